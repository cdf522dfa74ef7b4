package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"parley/adapters"
)

// socket is one connection of Socket Mode. One goroutine reads it and one pings. Each
// frame has its own goroutine until it is acknowledged.
type socket struct {
	set   *sockets
	conn  *websocket.Conn
	begun time.Time
	brief int // the sockets in a row before this one that ended soon; only the keeper uses it

	ready      chan struct{} // closed at Slack's hello
	others     int           // connections of other programs at the hello; valid after ready
	leaving    chan struct{} // closed when Slack asks for a replacement
	ended      chan struct{} // closed after the last read, when the connection is closed
	err        error         // the reason, valid after ended
	gotHello   bool          // ready is closed; only the reader uses it
	replaces   *socket       // the socket that this one replaces, if any
	flushed    chan struct{} // closed at the answer to flush's ping
	flushOnce  sync.Once     // guards the closing of flushed
	leaveAsked bool          // leaving is closed; only the reader writes it, before ended

	writing sync.Mutex // held during the write of a frame

	mu       sync.Mutex
	closing  bool          // frames read from now on are left for Slack to send again
	inFlight int           // frames that wait for their durable accept or acknowledgement
	idle     chan struct{} // closed when closing is set and no frame is in flight
}

// newSocket starts to read and ping a connection, which replaces the socket before.
func (s *sockets) newSocket(conn *websocket.Conn, before *socket) *socket {
	c := &socket{
		set: s, conn: conn, begun: time.Now(), replaces: before, flushed: make(chan struct{}),
		ready: make(chan struct{}), leaving: make(chan struct{}), ended: make(chan struct{}), idle: make(chan struct{}),
	}
	s.goroutines.Go(func() {
		c.err = c.read()
		_ = conn.Close()
		if c.gotHello {
			s.update(func() { s.open-- })
		}
		close(c.ended)
	})
	s.goroutines.Go(c.ping)
	return c
}

// read handles frames until the connection ends.
func (c *socket) read() (err error) {
	defer adapters.Recover(c.set.link.Log, &err)
	c.conn.SetReadLimit(maxFrame)
	answer := c.conn.PingHandler()
	c.conn.SetPingHandler(func(data string) error {
		c.extendDeadline()
		return answer(data)
	})
	c.conn.SetPongHandler(func(data string) error {
		c.extendDeadline()
		if data == flushPing {
			c.flushOnce.Do(func() { close(c.flushed) })
		}
		return nil
	})
	for {
		c.extendDeadline()
		_, frame, err := c.conn.ReadMessage()
		if err != nil {
			return c.describe(err)
		}
		if err := c.handle(frame); err != nil {
			return err
		}
	}
}

// extendDeadline restarts the silence limit. The reader calls it whenever Slack sends
// something.
func (c *socket) extendDeadline() { _ = c.conn.SetReadDeadline(time.Now().Add(c.set.times.Silence)) }

// describe returns the reason why a socket ended, for the operator.
func (c *socket) describe(err error) error {
	var network net.Error
	switch {
	case errors.Is(err, websocket.ErrReadLimit):
		return fmt.Errorf("a frame is larger than %d bytes", maxFrame)
	case errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("slack sent nothing for %v", c.set.times.Silence)
	}
	return fmt.Errorf("read a socket: %w", err)
}

// ping sends pings and closes the connection if one can't be sent. A half-open
// connection otherwise looks like a quiet one.
func (c *socket) ping() {
	ticker := time.NewTicker(c.set.times.Ping)
	defer ticker.Stop()
	for {
		select {
		case <-c.ended:
			return
		case <-ticker.C:
			if c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.set.times.Write)) != nil {
				_ = c.conn.Close()
			}
		}
	}
}

// flushPing is the content of flush's ping. Slack's answer to it follows all frames
// that Slack sent before.
const flushPing = "flush"

// flush waits until every frame that Slack has sent so far is read, so that frames of
// the next socket do not overtake frames of this one. The wait is bounded.
func (c *socket) flush() {
	_ = c.conn.WriteControl(websocket.PingMessage, []byte(flushPing), time.Now().Add(c.set.times.Flush))
	select {
	case <-c.flushed:
	case <-c.ended:
	case <-time.After(c.set.times.Flush):
	}
}

// begin counts a frame. It returns false if the socket is closing.
func (c *socket) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.inFlight++
	return true
}

// finish ends the work on a frame that begin counted.
func (c *socket) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight--; c.inFlight == 0 && c.closing {
		close(c.idle)
	}
}

// retire closes a socket that has been replaced. Until then the socket serves further
// frames: until Slack closes it, the drain time is over, or ctx ends.
func (c *socket) retire(ctx context.Context) {
	select {
	case <-c.ended:
	case <-time.After(c.set.times.Drain):
	case <-ctx.Done():
	}
	c.close()
}

// close accepts no more frames, waits until every accepted frame is acknowledged, and
// closes the connection by the websocket protocol. When it returns, the connection is
// closed.
func (c *socket) close() {
	c.mu.Lock()
	if !c.closing {
		c.closing = true
		if c.inFlight == 0 {
			close(c.idle)
		}
	}
	c.mu.Unlock()
	await(c.idle, c.set.times.Drain)
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	if c.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(c.set.times.CloseWait)) == nil {
		await(c.ended, c.set.times.CloseWait) // keep reading until then: otherwise our last acknowledgements might be lost
	}
	_ = c.conn.Close()
	<-c.ended
}

// await waits for a signal, but not longer than most.
func await(signal <-chan struct{}, most time.Duration) {
	select {
	case <-signal:
	case <-time.After(most):
	}
}
