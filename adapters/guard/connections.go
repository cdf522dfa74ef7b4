package guard

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

const (
	// maxStrangers bounds the open connections whose callers are not authenticated, and
	// maxOfAddress those of one address.
	maxStrangers, maxOfAddress = 2048, 256
)

// connections are the open connections of a server. If those of callers that are not
// authenticated become too many, the server closes one of them for each new one. It closes no
// connection that serves an authenticated caller.
type connections struct {
	mu             sync.Mutex
	max            int // of all connections; those that serve authenticated callers count too
	strangers, one int // bounds of those that do not, in all and of one address
	places         map[net.Conn]place
	of             map[key]int // those that do not, by address
	// A connection is waiting while the server waits for bytes of the peer: for a request,
	// its headers or its body. It is serving while a handler works. Each list begins with
	// the connection that has been in it longest.
	waiting, serving list.List
}

// place is the place of a connection in its list. One that serves an authenticated caller is in
// no list.
type place struct {
	address key
	list    *list.List
	element *list.Element
}

// changed is http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		for _, victim := range c.add(conn) {
			_ = victim.Close() // its peer learns nothing else
		}
	case http.StateIdle:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.put(conn, &c.waiting)
	case http.StateHijacked, http.StateClosed:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.remove(conn)
	}
}

// add adds a new connection. It returns the connections to close for it. Of those of its address,
// or else of all, that is the one that has been waiting longest, or else the one that has been
// serving longest.
func (c *connections) add(conn net.Conn) (victims []net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // an unknown address has the zero key
	address := keyOf(at.Addr().Unmap().WithZone(""))
	if c.of[address] >= c.one {
		victims = append(victims, c.oldest(func(of key) bool { return of == address }))
	}
	if strangers := c.waiting.Len() + c.serving.Len(); strangers > 0 && (strangers >= c.strangers || len(c.places) >= c.max) {
		victims = append(victims, c.oldest(func(key) bool { return true }))
	}
	c.places[conn] = place{address: address}
	c.put(conn, &c.waiting)
	return victims
}

// oldest removes and returns the oldest connection whose address fits. The caller holds the lock
// and knows that there is one.
func (c *connections) oldest(fits func(key) bool) net.Conn {
	for _, from := range []*list.List{&c.waiting, &c.serving} {
		for e := from.Front(); e != nil; e = e.Next() {
			if conn := e.Value.(net.Conn); fits(c.places[conn].address) {
				c.remove(conn)
				return conn
			}
		}
	}
	panic("no connection of this address is known")
}

// move puts a connection at the end of a list, unless it serves an authenticated caller or was
// removed.
func (c *connections) move(conn net.Conn, to *list.List) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.places[conn].list != nil {
		c.put(conn, to)
	}
}

// admit notes that a connection serves an authenticated caller until it is idle.
func (c *connections) admit(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.places[conn].list != nil {
		c.put(conn, nil)
	}
}

// put puts a known connection at the end of a list, or into none. The caller holds the lock.
func (c *connections) put(conn net.Conn, to *list.List) {
	at, open := c.places[conn]
	if !open {
		return
	}
	c.remove(conn)
	at.list, at.element = to, nil
	if to != nil {
		at.element = to.PushBack(conn)
		c.of[at.address]++
	}
	c.places[conn] = at
}

// remove removes a connection. The caller holds the lock.
func (c *connections) remove(conn net.Conn) {
	at := c.places[conn]
	if at.list != nil {
		at.list.Remove(at.element)
		if c.of[at.address]--; c.of[at.address] == 0 {
			delete(c.of, at.address)
		}
	}
	delete(c.places, conn)
}

// Admit notes that the caller of a request is authenticated: its connection stays open until the
// request is served.
func (g *Guard) Admit(r *http.Request) { g.connections.admit(connOf(r)) }
