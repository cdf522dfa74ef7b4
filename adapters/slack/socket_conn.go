package slack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// socket is one connection of Socket Mode. One goroutine reads it, one pings, and
// each frame has its own until it is acknowledged.
type socket struct {
	set   *sockets
	conn  *websocket.Conn
	begun time.Time

	greeted chan struct{} // closed at Slack's hello
	leaving chan struct{} // closed once Slack has asked us to go
	ended   chan struct{} // closed once nothing is read any more, and the connection is closed
	err     error         // why, once ended
	hailed  bool          // the reader's: greeted is closed
	before  *socket       // the one that this one replaces, if any
	hurry   chan struct{} // closed once its place is wanted
	caught  chan struct{} // closed at the answer to catchUp's ping
	once    sync.Once     // of caught
	asked   bool          // the reader's: leaving is closed

	writing sync.Mutex // held by who writes a frame

	mu      sync.Mutex
	closing bool          // what is read now is left to Slack to send again
	under   int           // frames under way
	idle    chan struct{} // closed once closing and nothing is under way
}

// newSocket reads the connection from now on, which replaces the one before. It holds one of the places until the
// connection is closed.
func (s *sockets) newSocket(conn *websocket.Conn, before *socket) *socket {
	c := &socket{
		set: s, conn: conn, begun: time.Now(), before: before, caught: make(chan struct{}), hurry: make(chan struct{}),
		greeted: make(chan struct{}), leaving: make(chan struct{}), ended: make(chan struct{}), idle: make(chan struct{}),
	}
	s.ending.Go(func() {
		c.err = guarded(c.read)
		_ = conn.Close()
		if c.hailed {
			s.ended()
		}
		<-s.places
		close(c.ended)
	})
	s.ending.Go(c.ping)
	return c
}

// read handles what comes until the connection ends.
func (c *socket) read() error {
	c.conn.SetReadLimit(maxFrame)
	answer := c.conn.PingHandler()
	c.conn.SetPingHandler(func(data string) error {
		c.alive()
		return answer(data)
	})
	c.conn.SetPongHandler(func(data string) error {
		c.alive()
		if data == catchUp {
			c.once.Do(func() { close(c.caught) })
		}
		return nil
	})
	for {
		c.alive()
		_, frame, err := c.conn.ReadMessage()
		if err != nil {
			return c.describe(err)
		}
		if err := c.handle(frame); err != nil {
			return err
		}
	}
}

// alive notes that Slack was heard.
func (c *socket) alive() { _ = c.conn.SetReadDeadline(time.Now().Add(c.set.times.silence)) }

// describe says in the operator's words why a socket ended.
func (c *socket) describe(err error) error {
	var network net.Error
	switch {
	case errors.Is(err, websocket.ErrReadLimit):
		return fmt.Errorf("a frame is larger than %d bytes", maxFrame)
	case errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("nothing was heard of slack for %v", c.set.times.silence)
	}
	return fmt.Errorf("read a socket: %w", err)
}

// ping asks for a sign of life, since a connection that is half open does not
// look different from a quiet one.
func (c *socket) ping() {
	ticker := time.NewTicker(c.set.times.ping)
	defer ticker.Stop()
	for {
		select {
		case <-c.ended:
			return
		case <-ticker.C:
			if c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.set.times.write)) != nil {
				_ = c.conn.Close()
			}
		}
	}
}

// catchUp is said in a ping whose answer tells that all is read which Slack has
// sent before it.
const catchUp = "catch up"

// catchUp waits, but not for long, until all is read that Slack has sent so far, so
// that what comes over the next socket is not taken for earlier.
func (c *socket) catchUp() {
	timer := time.NewTimer(c.set.times.catchUp)
	defer timer.Stop()
	_ = c.conn.WriteControl(websocket.PingMessage, []byte(catchUp), time.Now().Add(c.set.times.catchUp))
	select {
	case <-c.caught:
	case <-c.ended:
	case <-timer.C:
	}
}

// write sends one frame.
func (c *socket) write(frame []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.set.times.write))
	return c.conn.WriteMessage(websocket.TextMessage, frame)
}

// expected says whether an ended socket was to end.
func (c *socket) expected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing || c.asked
}

// begin counts a frame; false means that it comes too late.
func (c *socket) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.under++
	return true
}

// finish is the end of what begin began.
func (c *socket) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.under--; c.under == 0 && c.closing {
		close(c.idle)
	}
}

// retire gives up a socket that Slack has asked to go: it serves what still comes
// until Slack closes it, for a while, until its place is wanted, and until ctx ends.
func (c *socket) retire(ctx context.Context) {
	c.set.mu.Lock()
	c.set.retiring = append(c.set.retiring, c)
	c.set.mu.Unlock()
	timer := time.NewTimer(c.set.times.drain)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
	case <-c.hurry:
	case <-ctx.Done():
	}
	c.set.mu.Lock()
	c.set.retiring = slices.DeleteFunc(c.set.retiring, func(o *socket) bool { return o == c })
	c.set.mu.Unlock()
	c.close()
}

// close takes nothing new, sees what was taken into custody and acknowledged, and
// ends the connection as the protocol says. It returns when the place is free.
func (c *socket) close() {
	c.mu.Lock()
	if !c.closing {
		c.closing = true
		if c.under == 0 {
			close(c.idle)
		}
	}
	c.mu.Unlock()
	await(c.idle, c.set.times.drain)
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	if c.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(c.set.times.goodbye)) == nil {
		await(c.ended, c.set.times.goodbye) // what comes until then is read: else our last words might be lost
	}
	_ = c.conn.Close()
	<-c.ended
}

// await waits for the signal; false means that it did not come in time.
func await(signal <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-signal:
		return true
	case <-timer.C:
		return false
	}
}

// claim takes one of the slots; false means that none was free in time.
func claim(slots chan<- struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}
