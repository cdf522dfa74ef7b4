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
	// maxSockets is how many one app may have open at a time.
	// https://docs.slack.dev/apis/events-api/using-socket-mode#connections
	maxSockets = 10
	// maxTickets bounds the tickets that nobody has come with.
	maxTickets = 1000
	// maxAcks bounds the acknowledgements that are kept.
	maxAcks = 100_000
	// linkPath is where sockets are opened.
	linkPath = "/link/"
)

// The steps of opening a socket that a Script may provide for, like methods: the
// websocket's own request, and the hello that begins it. What Body a hello's
// fault has is sent in its place.
const (
	LinkStep  = "link"
	HelloStep = "hello"
)

// SocketOptions say how the server delivers what happens.
type SocketOptions struct {
	// PingEvery is how often a socket is pinged; 5 s if zero.
	PingEvery time.Duration
	// AckWithin is how long the app has to acknowledge an envelope; 3 s if zero.
	AckWithin time.Duration
	// Repeat are the waits, after that, before an event is sent again; as Slack's,
	// 0 s, 1 min and 5 min, if nil.
	Repeat []time.Duration
	// QueueFor is how long an envelope waits for a socket where there is none. It is
	// lost then: at once, if zero.
	QueueFor time.Duration
	// Grace is how long a socket that was warned stays open; 10 s if zero.
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

// Ack is one acknowledgement that came over a socket.
type Ack struct {
	EnvelopeID string          `json:"envelope_id"`
	Payload    json.RawMessage `json:"payload"`
	Socket     int             `json:"-"` // which one, counted from 1 as they were opened
}

// hub keeps the sockets and what is on its way over them.
type hub struct {
	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, whenever something below changes

	tickets  []string
	sockets  []*socket // as they were opened
	opened   int       // ever
	most     int
	turn     int                  // whose turn it is to take an envelope
	expected map[string]*delivery // by envelope id
	acks     []Ack
	underWay int
	unacked  int
	missed   int
}

func newHub() *hub { return &hub{changed: make(chan struct{}), expected: map[string]*delivery{}} }

// change calls f, and tells those who wait.
func (h *hub) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

// await returns once ok holds, or with an error when ctx ends.
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

// openConnection answers apps.connections.open with an address that is good for
// one socket.
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

// take uses a ticket up.
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

// enter counts the socket among the open ones, if there may be one more.
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

// leave takes the socket out; no envelope goes to it any more.
func (h *hub) leave(c *socket) {
	h.change(func() { h.sockets = slices.DeleteFunc(h.sockets, func(o *socket) bool { return o == c }) })
}

// link opens a socket and serves it to its end. One too many is told so in place
// of the hello.
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
		return // the client has had its answer
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

// greet says hello; after that the socket takes envelopes.
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

// Sockets tells how many sockets are open, and how many ever were at a time.
func (s *Server) Sockets() (open, most int) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return len(s.hub.sockets), s.hub.most
}

// AwaitSockets returns once exactly n sockets are open and have been greeted, and
// so many at least have ever been opened, or with an error when ctx ends.
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

// AwaitFresh returns once n sockets are open that have not been told to go, or with
// an error when ctx ends.
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

// AwaitAcks returns all acknowledgements as soon as there are n of them, or those
// there are with an error when ctx ends.
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
