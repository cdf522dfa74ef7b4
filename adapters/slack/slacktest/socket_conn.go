package slacktest

import (
	"encoding/json"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// maxUnsent is how many frames wait for one socket; what comes then is not sent.
	maxUnsent = 4096
	// writeTimeout bounds what one frame may take to be written.
	writeTimeout = 5 * time.Second
)

// All of the sockets, for Disconnect, Cut and Mute.
const All = math.MaxInt

// socket is the server's end of one connection. Its reader is the request's own
// goroutine; another one writes.
type socket struct {
	conn   *websocket.Conn
	number int // from 1, as they were opened
	out    chan message
	muted  atomic.Bool
	once   sync.Once
	gone   chan struct{} // closed once it is to be closed
	ended  chan struct{} // closed once nothing is read any more
	left   func()        // takes it out of the hub; before the client sees the end, which may come back at once

	greeted, leaving bool // the hub's lock guards them
}

func newSocket(conn *websocket.Conn) *socket {
	conn.SetReadLimit(maxRequest)
	c := &socket{conn: conn, out: make(chan message, maxUnsent), gone: make(chan struct{}), ended: make(chan struct{})}
	goodbye := conn.CloseHandler()
	conn.SetCloseHandler(func(code int, text string) error {
		c.left()
		return goodbye(code, text)
	})
	conn.SetPingHandler(func(data string) error {
		c.queue(message{websocket.PongMessage, []byte(data)})
		return nil
	})
	return c
}

// message is something to be written, of a websocket's kind.
type message struct {
	kind int
	data []byte
}

// send has the frame written, in its order; false means that it won't be.
func (c *socket) send(frame []byte) bool { return c.queue(message{websocket.TextMessage, frame}) }

func (c *socket) queue(m message) bool {
	select {
	case <-c.gone:
		return false
	default:
	}
	select {
	case c.out <- m:
		return true
	default:
		return false
	}
}

// close ends the connection as the protocol says, after what was sent.
func (c *socket) close() { c.once.Do(func() { close(c.gone) }) }

// cut ends it without a word.
func (c *socket) cut() {
	c.left()
	if tcp, ok := c.conn.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.conn.Close()
	c.close()
}

// write sends frames and pings until the socket is to be closed.
func (c *socket) write(every time.Duration, stopped <-chan struct{}) {
	defer c.conn.Close()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case m := <-c.out:
			if !c.put(m) {
				return
			}
		case <-ticker.C:
			if !c.muted.Load() && c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout)) != nil {
				return
			}
		case <-c.gone:
			c.finish(stopped)
			return
		case <-stopped:
			return
		}
	}
}

// put writes one message; a muted socket says nothing.
func (c *socket) put(m message) bool {
	if c.muted.Load() {
		return true
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	return c.conn.WriteMessage(m.kind, m.data) == nil
}

// finish writes what is left, says goodbye, and gives the client a moment to do so.
func (c *socket) finish(stopped <-chan struct{}) {
	for {
		select {
		case m := <-c.out:
			if !c.put(m) {
				return
			}
			continue
		default:
		}
		break
	}
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	c.left()
	if c.muted.Load() || c.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(writeTimeout)) != nil {
		return
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Second))
	select {
	case <-c.ended:
	case <-stopped:
	}
}

// read takes acknowledgements until the connection ends.
func (c *socket) read(h *hub) {
	defer close(c.ended)
	defer c.close()
	for {
		_, frame, err := c.conn.ReadMessage()
		if err != nil {
			return
		}
		var ack Ack
		if c.muted.Load() || json.Unmarshal(frame, &ack) != nil || ack.EnvelopeID == "" {
			continue
		}
		ack.Socket = c.number
		h.change(func() {
			if len(h.acks) < maxAcks {
				h.acks = append(h.acks, ack)
			}
			if expected := h.expected[ack.EnvelopeID]; expected != nil {
				expected.acked <- ack
				delete(h.expected, ack.EnvelopeID)
			}
		})
	}
}

// oldest returns the n oldest sockets of those that choose takes; it is called
// with the hub's lock held.
func (h *hub) oldest(n int, choose func(*socket) bool) (found []*socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.sockets {
		if len(found) < n && choose(c) {
			found = append(found, c)
		}
	}
	return found
}

// isFresh says that the socket was greeted and has not been told to go; from now
// on it has.
func isFresh(c *socket) bool {
	fresh := c.greeted && !c.leaving && !c.muted.Load()
	c.leaving = c.leaving || fresh
	return fresh
}

// Disconnect tells the n oldest sockets that have not been told yet to go, and returns how many it told. One
// that was told "warning" stays open for Options.Grace, and takes envelopes
// meanwhile where no other socket does; any other is closed a tenth of that later.
// https://docs.slack.dev/apis/events-api/using-socket-mode#disconnect
func (s *Server) Disconnect(reason string, n int) int {
	if !s.enter() {
		return 0
	}
	defer s.running.Done()
	grace := s.options.Grace
	if reason != "warning" {
		grace /= 10
	}
	sockets := s.hub.oldest(n, isFresh)
	for _, c := range sockets {
		c.send(disconnectFrame(reason))
		s.running.Go(func() {
			select {
			case <-time.After(grace):
				c.close()
			case <-c.gone:
			case <-s.stopped:
			}
		})
	}
	return len(sockets)
}

// Cut resets the connections of the n oldest sockets without a word, and returns
// how many there were.
func (s *Server) Cut(n int) int {
	sockets := s.hub.oldest(n, func(*socket) bool { return true })
	for _, c := range sockets {
		c.cut()
	}
	return len(sockets)
}

// Mute makes the n oldest sockets half-open: they stay in the server's list, get
// envelopes that go nowhere, and neither say nor hear anything any more, until the
// client closes them. It returns how many there were.
func (s *Server) Mute(n int) int {
	sockets := s.hub.oldest(n, func(c *socket) bool { return !c.muted.Load() })
	for _, c := range sockets {
		c.muted.Store(true)
	}
	return len(sockets)
}

// SendFrame sends any bytes over one of the sockets; false means that none took them.
func (s *Server) SendFrame(frame []byte) bool { return s.hub.offer(slices.Clone(frame), nil) != nil }

// offer gives the frame to the socket whose turn it is; where all have been told to
// go, to the newest. The last one gets it only where there is no other. Nil means
// that there was none to take it.
func (h *hub) offer(frame []byte, last *socket) *socket {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range h.sockets {
		h.turn++
		if c := h.sockets[h.turn%len(h.sockets)]; c != last && c.greeted && !c.leaving && c.send(frame) {
			return c
		}
	}
	for _, c := range slices.Backward(h.sockets) {
		if c != last && c.greeted && c.send(frame) {
			return c
		}
	}
	if last != nil && slices.Contains(h.sockets, last) && last.send(frame) {
		return last
	}
	return nil
}
