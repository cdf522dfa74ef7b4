package delivery

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"parley/adapters/slack/slacktest/internal/life"
	"parley/adapters/slack/slacktest/internal/wire"
)

const (
	// maxSockets bounds the open sockets of one app.
	// https://docs.slack.dev/apis/events-api/using-socket-mode#connections
	maxSockets = 10
	// maxTickets bounds the unused tickets.
	maxTickets = 1000
	// maxAcks bounds the stored acknowledgements.
	maxAcks = 100_000
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

// Complete sets the defaults.
func (o *SocketOptions) Complete() {
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

// Hub contains the sockets and the envelopes on their way.
type Hub struct {
	life    *life.Life
	options SocketOptions
	app     string // its id
	// sign returns the headers of a signed request to the hook.
	sign func(secret string, at time.Time, body []byte) http.Header
	hook atomic.Pointer[Hook] // nil if events go over sockets

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

// New returns a hub of the app with that id, which works until the life ends.
func New(l *life.Life, options SocketOptions, app string, sign func(secret string, at time.Time, body []byte) http.Header) *Hub {
	return &Hub{life: l, options: options, app: app, sign: sign, changed: make(chan struct{}), expected: map[string]*delivery{}}
}

// change calls f and wakes the waiting goroutines.
func (h *Hub) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

// await waits until ok returns true, or returns an error if ctx ends first.
func (h *Hub) await(ctx context.Context, ok func() bool) error {
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

// Ticket returns the query of the address of one socket.
func (h *Hub) Ticket() string {
	ticket := rand.Text()
	h.change(func() {
		h.tickets = append(h.tickets, ticket)
		if len(h.tickets) > maxTickets {
			h.tickets = h.tickets[1:]
		}
	})
	return "?ticket=" + ticket + "&app_id=" + h.app
}

// take uses a ticket up. It returns false if the ticket is not valid.
func (h *Hub) take(ticket string) bool {
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
func (h *Hub) enter(c *socket) (entered bool) {
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
func (h *Hub) leave(c *socket) {
	h.change(func() { h.sockets = slices.DeleteFunc(h.sockets, func(o *socket) bool { return o == c }) })
}

// Open opens a socket and serves it until it closes. If there are too many sockets, the client
// gets a disconnect instead of a hello. The hello waits for greeting, which returns false if
// there is to be none.
func (h *Hub) Open(w http.ResponseWriter, r *http.Request, greeting func() (Hello, bool)) {
	if !h.take(r.URL.Query().Get("ticket")) {
		http.Error(w, "the ticket is not valid", http.StatusForbidden)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has responded
	}
	c := newSocket(conn)
	c.left = func() { h.leave(c) }
	defer conn.Close()
	if !h.enter(c) {
		_ = c.conn.WriteMessage(websocket.TextMessage, disconnectFrame("too_many_websockets"))
		return
	}
	defer c.left()
	h.life.Running.Go(func() { c.write(h.options.PingEvery, h.life.Stopped) })
	h.life.Running.Go(func() {
		if given, ok := greeting(); ok {
			h.greet(c, given)
		}
	})
	c.read(h)
}

// Hello is the beginning of a socket.
type Hello struct {
	Cut  bool   // the connection is cut instead
	Body string // replaces the hello frame, if it is not empty
}

// greet sends the hello. The socket accepts envelopes after that.
func (h *Hub) greet(c *socket, given Hello) {
	if given.Cut {
		c.cut()
		return
	}
	h.change(func() {
		frame := wire.Encode(map[string]any{
			"type": "hello", "num_connections": len(h.sockets), "connection_info": map[string]any{"app_id": h.app},
			"debug_info": map[string]any{"host": "applink-slacktest", "approximate_connection_time": 18060},
		})
		if given.Body != "" {
			frame = []byte(given.Body)
		}
		c.send(frame)
		c.greeted = true
	})
}

func disconnectFrame(reason string) []byte {
	return wire.Encode(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-slacktest"}})
}

// Sockets returns the number of open sockets, and the largest number of sockets that were
// open at a time.
func (h *Hub) Sockets() (open, most int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sockets), h.most
}

// AwaitSockets waits until exactly n sockets are open and greeted, and at least ever sockets
// have been opened. It returns an error if ctx ends first.
func (h *Hub) AwaitSockets(ctx context.Context, n, ever int) error {
	var open, opened int
	err := h.await(ctx, func() bool {
		open, opened = 0, h.opened
		for _, c := range h.sockets {
			if c.greeted {
				open++
			}
		}
		return open == n && len(h.sockets) == n && opened >= ever
	})
	if err != nil {
		return fmt.Errorf("%d of %d sockets are open, and %d of %d have been: %w", open, n, opened, ever, err)
	}
	return nil
}

// AwaitFresh waits until n open sockets have not been asked to disconnect. It returns an
// error if ctx ends first.
func (h *Hub) AwaitFresh(ctx context.Context, n int) error {
	fresh := 0
	err := h.await(ctx, func() bool {
		fresh = 0
		for _, c := range h.sockets {
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
func (h *Hub) AwaitAcks(ctx context.Context, n int) ([]Ack, error) {
	var acks []Ack
	err := h.await(ctx, func() bool {
		acks = slices.Clone(h.acks)
		return len(acks) >= n
	})
	if err != nil {
		return acks, fmt.Errorf("%d of %d acknowledgements arrived: %w", len(acks), n, err)
	}
	return acks, nil
}
