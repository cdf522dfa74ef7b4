package guard

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections are the open connections of a server. If they become too many, the server
// closes one for each new one.
type connections struct {
	mu     sync.Mutex
	max    int
	places map[net.Conn]place
	// A connection is waiting while the server waits for bytes of the peer: for a request,
	// its headers or its body. It is serving while a handler works. Each list begins with
	// the connection that has been in it longest.
	waiting, serving list.List
}

// place is the place of a connection in its list.
type place struct {
	list    *list.List
	element *list.Element
}

// changed is http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if victim := c.add(conn); victim != nil {
			_ = victim.Close() // its peer learns nothing else
		}
	case http.StateIdle:
		c.move(conn, &c.waiting)
	case http.StateHijacked, http.StateClosed:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.remove(conn)
	}
}

// add adds a new connection. It returns the connection to close for it; nil if there is room.
// That is the one that has been waiting longest, or else the one that has been serving longest.
func (c *connections) add(conn net.Conn) (victim net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range []*list.List{&c.waiting, &c.serving} {
		if len(c.places) >= c.max && from.Len() > 0 {
			victim = from.Front().Value.(net.Conn)
			c.remove(victim)
		}
	}
	c.places[conn] = place{&c.waiting, c.waiting.PushBack(conn)}
	return victim
}

// move puts a connection at the end of a list. A connection that was removed stays so.
func (c *connections) move(conn net.Conn, to *list.List) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.places[conn]; open {
		c.remove(conn)
		c.places[conn] = place{to, to.PushBack(conn)}
	}
}

// remove removes a connection. The caller holds the lock.
func (c *connections) remove(conn net.Conn) {
	if at, open := c.places[conn]; open {
		at.list.Remove(at.element)
		delete(c.places, conn)
	}
}
