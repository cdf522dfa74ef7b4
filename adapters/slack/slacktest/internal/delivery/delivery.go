// Package delivery brings envelopes to the app: over the sockets of Socket Mode or to a hook, again
// if the app does not acknowledge them.
package delivery

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"parley/adapters/slack/slacktest/internal/wire"
)

// maxUnderWay bounds the envelopes under way. The server loses any further one.
const maxUnderWay = 30_000

// The kinds of envelopes in Socket Mode.
const (
	EventsAPI     = "events_api"
	SlashCommands = "slash_commands"
	Interactive   = "interactive"
)

// State is the result of an envelope's delivery.
type State string

// The results of an envelope's delivery.
const (
	Acked   State = "acked"
	Unacked State = "unacked" // sent as often as Slack does, without an acknowledgement
	Missed  State = "missed"  // there was no socket to send it to
)

// Result is the end of a delivery.
type Result struct {
	State    State
	Attempts int // how often it was sent
	// Answer is the payload of the socket's acknowledgement, or the body of the hook's
	// response.
	Answer []byte
}

// Delivery is an envelope on its way to the app.
type Delivery struct{ *delivery }

type delivery struct {
	id, kind string
	payload  []byte
	acked    chan Ack // receives the socket's acknowledgement; has room for it
	done     chan struct{}
	result   Result // valid after done is closed
}

// EnvelopeID returns the envelope's id in Socket Mode.
func (d Delivery) EnvelopeID() string { return d.id }

// Done returns a channel that is closed at the end of the delivery. It stays open if the
// server closes first.
func (d Delivery) Done() <-chan struct{} { return d.done }

// Wait waits for the end of the delivery, and returns its result, or an error if ctx ends
// first.
func (d Delivery) Wait(ctx context.Context) (Result, error) {
	select {
	case <-d.done:
		return d.result, nil
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
}

// PushRaw sends a payload of one of the kinds unchanged.
func (h *Hub) PushRaw(kind string, payload []byte) Delivery {
	d := &delivery{id: uuid.NewString(), kind: kind, payload: slices.Clone(payload), acked: make(chan Ack, 1), done: make(chan struct{})}
	if !h.life.Enter() {
		return Delivery{d}
	}
	full := false
	h.change(func() {
		if full = h.underWay >= maxUnderWay; !full {
			h.underWay++
		}
	})
	hook := h.hook.Load()
	switch {
	case full:
		h.end(d, Result{State: Missed})
		h.life.Running.Done()
	case hook != nil:
		go h.deliver(d, func() Result { return h.overHook(d, *hook) })
	default:
		first := h.overSocket(d, 0, nil) // synchronous, because order matters
		go h.deliver(d, func() Result { return h.followUp(d, first) })
	}
	return Delivery{d}
}

// deliver runs a delivery. send returns a result without a state if the server
// stopped.
func (h *Hub) deliver(d *delivery, send func() Result) {
	defer h.life.Running.Done()
	result := send()
	h.change(func() { h.underWay-- })
	if result.State != "" {
		h.end(d, result)
	}
}

func (h *Hub) end(d *delivery, result Result) {
	h.change(func() {
		switch result.State {
		case Unacked:
			h.unacked++
		case Missed:
			h.missed++
		}
		delete(h.expected, d.id)
	})
	d.result = result
	close(d.done)
}

// Unacked returns the number of envelopes that were sent as often as Slack does without an
// acknowledgement.
func (h *Hub) Unacked() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unacked
}

// Missed returns the number of envelopes that were lost for lack of a socket.
func (h *Hub) Missed() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missed
}

// UnderWay returns the number of envelopes whose delivery has not ended.
func (h *Hub) UnderWay() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.underWay
}

// repetitions returns the pauses before an envelope is sent again. Slack repeats only events;
// a user who presses a button sees an error instead.
func (h *Hub) repetitions(d *delivery) []time.Duration {
	if d.kind != EventsAPI {
		return nil
	}
	return h.options.Repeat
}

// form returns the form in which an envelope other than an event is posted.
// https://docs.slack.dev/interactivity/implementing-slash-commands
func form(d *delivery) url.Values {
	if d.kind == Interactive {
		return url.Values{"payload": {string(d.payload)}}
	}
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(d.payload, &fields) // a payload that is not an object has no fields
	values := url.Values{}
	for name, raw := range fields {
		values.Set(name, wire.Argument(raw))
	}
	return values
}
