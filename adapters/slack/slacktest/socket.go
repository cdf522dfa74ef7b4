package slacktest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// maxSockets bounds the open sockets of one app.
	// https://docs.slack.dev/apis/events-api/using-socket-mode#connections
	maxSockets = 10
	// maxTickets bounds the unused tickets.
	maxTickets = 1000
	// maxAcks bounds the stored acknowledgements.
	maxAcks = 100_000
	// linkPath is the path for opening sockets.
	linkPath = "/link/"
)

// The steps of opening a socket. Script accepts them like methods: the websocket's own
// request, and the hello frame that follows. If a fault of a hello has a Body, it replaces
// the hello.
const (
	LinkStep  = "link"
	HelloStep = "hello"
)

// SocketOptions configure the delivery of events.
type SocketOptions struct {
	// PingEvery is the interval of pings to a socket; 5 s if zero.
	PingEvery time.Duration
	// AckWithin bounds the wait for the acknowledgement of an envelope; 3 s if zero.
	AckWithin time.Duration
	// Repeat contains the further waits before an event is sent again. If it is nil, they are
	// Slack's: 0 s, 1 min and 5 min.
	Repeat []time.Duration
	// QueueFor bounds an envelope's wait for a socket if there is none. The envelope is then
	// lost; at once if QueueFor is zero.
	QueueFor time.Duration
	// Grace is the time that a socket stays open after a warning; 10 s if zero.
	Grace time.Duration
}

func (o *SocketOptions) complete() {
	o.PingEvery = cmp.Or(o.PingEvery, 5*time.Second)
	o.AckWithin = cmp.Or(o.AckWithin, 3*time.Second)
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	if o.Repeat == nil {
		o.Repeat = []time.Duration{0, time.Minute, 5 * time.Minute}
	}
}

// Ack is one acknowledgement from a socket.
type Ack struct {
	EnvelopeID string          `json:"envelope_id"`
	Payload    json.RawMessage `json:"payload"`
	Socket     int             `json:"-"` // the number of the socket, from 1 in the order of opening
}

// hub contains the sockets and the envelopes on their way.
type hub struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change of a field below

	tickets  []string
	sockets  []*socket // in the order of opening
	opened   int       // the number of sockets ever opened
	most     int
	turn     int                  // selects the socket for the next envelope
	expected map[string]*delivery // by envelope id
	acks     []Ack
	underWay int
	unacked  int
	missed   int
}

func newHub() *hub { return &hub{changed: make(chan struct{}), expected: map[string]*delivery{}} }

// change calls f and wakes the waiting goroutines.
func (h *hub) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

// await waits until ok returns true, or returns an error if ctx ends first.
func (h *hub) await(ctx context.Context, ok func() bool) error {
	for {
		h.mu.Lock()
		done, changed := ok(), h.changed
		h.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// openConnection responds to apps.connections.open with an address for one socket.
// https://docs.slack.dev/reference/methods/apps.connections.open
func (s *Server) openConnection(url.Values) []byte {
	ticket := rand.Text()
	s.hub.change(func() {
		s.hub.tickets = append(s.hub.tickets, ticket)
		if len(s.hub.tickets) > maxTickets {
			s.hub.tickets = s.hub.tickets[1:]
		}
	})
	address := strings.Replace(s.url, "http://", "ws://", 1) + linkPath + "?ticket=" + ticket + "&app_id=" + App
	return encode(map[string]any{"ok": true, "url": address})
}

// take uses a ticket up. It returns false if the ticket is not valid.
func (h *hub) take(ticket string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.Index(h.tickets, ticket)
	if at < 0 {
		return false
	}
	h.tickets = slices.Delete(h.tickets, at, at+1)
	return true
}

// enter adds the socket to the open ones, or returns false if there are too many.
func (h *hub) enter(c *socket) (entered bool) {
	h.change(func() {
		if entered = len(h.sockets) < maxSockets; !entered {
			return
		}
		h.opened++
		c.number = h.opened
		h.sockets = append(h.sockets, c)
		h.most = max(h.most, len(h.sockets))
	})
	return entered
}

// leave removes the socket. It gets no more envelopes.
func (h *hub) leave(c *socket) {
	h.change(func() { h.sockets = slices.DeleteFunc(h.sockets, func(o *socket) bool { return o == c }) })
}

// link opens a socket and serves it until it closes. If there are too many sockets, the
// client gets a disconnect instead of a hello.
func (s *Server) link(w http.ResponseWriter, r *http.Request) {
	call := Call{Method: LinkStep, Form: r.URL.Query()}
	if s.options.OnCall != nil {
		s.options.OnCall(call)
	}
	fault := s.fault(call)
	if !s.pass(after(fault.Latency), fault.Hold) {
		panic(http.ErrAbortHandler)
	}
	if fault.answers() {
		fault.write(w, nil)
		return
	}
	if !s.hub.take(call.Form.Get("ticket")) {
		http.Error(w, "the ticket is not valid", http.StatusForbidden)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has responded
	}
	c := newSocket(conn)
	c.left = func() { s.hub.leave(c) }
	defer conn.Close()
	if !s.hub.enter(c) {
		_ = c.conn.WriteMessage(websocket.TextMessage, disconnectFrame("too_many_websockets"))
		return
	}
	defer c.left()
	s.running.Go(func() { c.write(s.options.PingEvery, s.stopped) })
	s.running.Go(func() { s.greet(c) })
	c.read(s.hub)
}

// greet sends the hello. The socket accepts envelopes after that.
func (s *Server) greet(c *socket) {
	fault := s.fault(Call{Method: HelloStep})
	if !s.pass(after(fault.Latency), fault.Hold) {
		return
	}
	if fault.Cut {
		c.cut()
		return
	}
	s.hub.change(func() {
		hello := encode(map[string]any{
			"type": "hello", "num_connections": len(s.hub.sockets), "connection_info": map[string]any{"app_id": App},
			"debug_info": map[string]any{"host": "applink-slacktest", "approximate_connection_time": 18060},
		})
		if fault.Body != "" {
			hello = []byte(fault.Body)
		}
		c.send(hello)
		c.greeted = true
	})
}

func disconnectFrame(reason string) []byte {
	return encode(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-slacktest"}})
}

// Sockets returns the number of open sockets, and the largest number of sockets that were
// open at a time.
func (s *Server) Sockets() (open, most int) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return len(s.hub.sockets), s.hub.most
}

// AwaitSockets waits until exactly n sockets are open and greeted, and at least ever sockets
// have been opened. It returns an error if ctx ends first.
func (s *Server) AwaitSockets(ctx context.Context, n, ever int) error {
	var open, opened int
	err := s.hub.await(ctx, func() bool {
		open, opened = 0, s.hub.opened
		for _, c := range s.hub.sockets {
			if c.greeted {
				open++
			}
		}
		return open == n && len(s.hub.sockets) == n && opened >= ever
	})
	if err != nil {
		return fmt.Errorf("%d of %d sockets are open, and %d of %d have been: %w", open, n, opened, ever, err)
	}
	return nil
}

// AwaitFresh waits until n open sockets have not been asked to disconnect. It returns an
// error if ctx ends first.
func (s *Server) AwaitFresh(ctx context.Context, n int) error {
	fresh := 0
	err := s.hub.await(ctx, func() bool {
		fresh = 0
		for _, c := range s.hub.sockets {
			if c.greeted && !c.leaving {
				fresh++
			}
		}
		return fresh >= n
	})
	if err != nil {
		return fmt.Errorf("%d of %d fresh sockets are open: %w", fresh, n, err)
	}
	return nil
}

// AwaitAcks waits until there are n acknowledgements and returns them all. If ctx ends first,
// it returns the present ones and an error.
func (s *Server) AwaitAcks(ctx context.Context, n int) ([]Ack, error) {
	var acks []Ack
	err := s.hub.await(ctx, func() bool {
		acks = slices.Clone(s.hub.acks)
		return len(acks) >= n
	})
	if err != nil {
		return acks, fmt.Errorf("%d of %d acknowledgements arrived: %w", len(acks), n, err)
	}
	return acks, nil
}
