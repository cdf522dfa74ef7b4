package delivery

import (
	"encoding/json"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"parley/adapters/slack/slacktest/internal/wire"
)

const (
	// maxUnsent bounds the frames that wait for one socket. Further frames are not sent.
	maxUnsent = 4096
	// writeTimeout bounds the writing of one frame.
	writeTimeout = 5 * time.Second
)

// All selects all sockets in Disconnect, Cut and Mute.
const All = math.MaxInt

// socket is the server's side of one connection. The request's own goroutine reads, and
// another one writes.
type socket struct {
	conn   *websocket.Conn
	number int // from 1, in the order of opening
	out    chan message
	muted  atomic.Bool
	once   sync.Once
	gone   chan struct{} // closed when the socket is to be closed
	ended  chan struct{} // closed when the reading has ended
	left   func()        // removes it from the hub before the client can see the close, since the client may reconnect at once

	greeted, leaving bool // guarded by the hub's lock
}

func newSocket(conn *websocket.Conn) *socket {
	conn.SetReadLimit(wire.MaxRequest)
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

// message is a websocket message to be written.
type message struct {
	kind int
	data []byte
}

// send queues the frame in its order. It returns false if the frame will not be written.
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

// close closes the connection as the protocol requires, after the queued frames.
func (c *socket) close() { c.once.Do(func() { close(c.gone) }) }

// cut resets the connection without a close frame.
func (c *socket) cut() {
	c.left()
	if tcp, ok := c.conn.NetConn().(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.conn.Close()
	c.close()
}

// write writes frames and pings until the socket is to be closed.
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

// put writes one message. A muted socket drops it.
func (c *socket) put(m message) bool {
	if c.muted.Load() {
		return true
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	return c.conn.WriteMessage(m.kind, m.data) == nil
}

// finish writes the queued messages and a close frame, and waits up to a second for the
// client's.
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

// read reads acknowledgements until the connection closes.
func (c *socket) read(h *Hub) {
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

// oldest returns the n oldest sockets for which choose returns true. It holds the hub's lock
// during the call of choose.
func (h *Hub) oldest(n int, choose func(*socket) bool) (found []*socket) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.sockets {
		if len(found) < n && choose(c) {
			found = append(found, c)
		}
	}
	return found
}

// isFresh reports whether the socket was greeted and has not been asked to disconnect. It
// marks the socket as asked.
func isFresh(c *socket) bool {
	fresh := c.greeted && !c.leaving && !c.muted.Load()
	c.leaving = c.leaving || fresh
	return fresh
}

// Disconnect asks the n oldest sockets that have not been asked yet to disconnect, and
// returns their number. A socket with the reason "warning" stays open for Options.Grace, and
// meanwhile gets envelopes if no other socket does. With any other reason it closes after a
// tenth of that time.
// https://docs.slack.dev/apis/events-api/using-socket-mode#disconnect
func (h *Hub) Disconnect(reason string, n int) int {
	if !h.life.Enter() {
		return 0
	}
	defer h.life.Running.Done()
	grace := h.options.Grace
	if reason != "warning" {
		grace /= 10
	}
	sockets := h.oldest(n, isFresh)
	for _, c := range sockets {
		c.send(disconnectFrame(reason))
		h.life.Running.Go(func() {
			select {
			case <-time.After(grace):
				c.close()
			case <-c.gone:
			case <-h.life.Stopped:
			}
		})
	}
	return len(sockets)
}

// Cut resets the connections of the n oldest sockets without a close frame, and returns their
// number.
func (h *Hub) Cut(n int) int {
	sockets := h.oldest(n, func(*socket) bool { return true })
	for _, c := range sockets {
		c.cut()
	}
	return len(sockets)
}

// Mute makes the n oldest sockets half-open: they stay in the server's list and get envelopes
// that go nowhere. They neither send nor receive anything until the client closes them. Mute
// returns their number.
func (h *Hub) Mute(n int) int {
	sockets := h.oldest(n, func(c *socket) bool { return !c.muted.Load() })
	for _, c := range sockets {
		c.muted.Store(true)
	}
	return len(sockets)
}

// SendFrame sends any bytes over one of the sockets. It returns false if no socket accepted
// them.
func (h *Hub) SendFrame(frame []byte) bool { return h.offer(slices.Clone(frame), nil) != nil }

// offer gives the frame to the next socket in turn. If all have been asked to disconnect, the
// newest gets it; last gets it only if there is no other. offer returns nil if no socket
// accepted the frame.
func (h *Hub) offer(frame []byte, last *socket) *socket {
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
