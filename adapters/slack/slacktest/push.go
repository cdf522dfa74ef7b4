package slacktest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
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

// Push sends the app an event in an event_callback: to the hook if there is one, else over a
// socket. It does not wait for the delivery. The envelopes of one socket leave in the order
// of their Push.
func (s *Server) Push(inner []byte) Delivery {
	return s.PushRaw(EventsAPI, Callback(inner, "Ev"+strings.ToUpper(strings.ReplaceAll(uuid.NewString(), "-", ""))))
}

// Callback returns the event_callback of an event.
// https://docs.slack.dev/apis/events-api/#callback-field
func Callback(inner []byte, eventID string) []byte {
	return wrap(json.RawMessage(inner), Team, App, eventID, time.Now().Unix())
}

func wrap(event any, team, app, eventID string, at int64) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(map[string]any{ // strings, numbers and raw JSON always encode
		"type": "event_callback", "team_id": team, "api_app_id": app, "event_id": eventID,
		"event_time": at, "event": event,
		"authorizations": []map[string]any{{"team_id": team, "user_id": BotUser, "is_bot": true}},
	})
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// PushRaw sends a payload of one of the kinds unchanged.
func (s *Server) PushRaw(kind string, payload []byte) Delivery {
	d := &delivery{id: uuid.NewString(), kind: kind, payload: slices.Clone(payload), acked: make(chan Ack, 1), done: make(chan struct{})}
	if !s.enter() {
		return Delivery{d}
	}
	full := false
	s.hub.change(func() {
		if full = s.hub.underWay >= maxUnderWay; !full {
			s.hub.underWay++
		}
	})
	hook := s.hook.Load()
	switch {
	case full:
		s.end(d, Result{State: Missed})
		s.running.Done()
	case hook != nil:
		go s.deliver(d, func() Result { return s.overHook(d, *hook) })
	default:
		first := s.overSocket(d, 0, nil) // synchronous, because order matters
		go s.deliver(d, func() Result { return s.followUp(d, first) })
	}
	return Delivery{d}
}

// deliver runs a delivery. send returns a result without a state if the server
// stopped.
func (s *Server) deliver(d *delivery, send func() Result) {
	defer s.running.Done()
	result := send()
	s.hub.change(func() { s.hub.underWay-- })
	if result.State != "" {
		s.end(d, result)
	}
}

func (s *Server) end(d *delivery, result Result) {
	s.hub.change(func() {
		switch result.State {
		case Unacked:
			s.hub.unacked++
		case Missed:
			s.hub.missed++
		}
		delete(s.hub.expected, d.id)
	})
	d.result = result
	close(d.done)
}

// Unacked returns the number of envelopes that were sent as often as Slack does without an
// acknowledgement.
func (s *Server) Unacked() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.unacked
}

// Missed returns the number of envelopes that were lost for lack of a socket.
func (s *Server) Missed() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.missed
}

// UnderWay returns the number of envelopes whose delivery has not ended.
func (s *Server) UnderWay() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.underWay
}

// repetitions returns the pauses before an envelope is sent again. Slack repeats only events;
// a user who presses a button sees an error instead.
func (s *Server) repetitions(d *delivery) []time.Duration {
	if d.kind != EventsAPI {
		return nil
	}
	return s.options.Repeat
}

// Say stores a person's message in its channel, at its TS or the channel's next one. It sends
// the app a message event and, if the text mentions the bot outside a direct message, an
// app_mention. It returns the message with its TS.
func (s *Server) Say(m Message) (Message, []Delivery) {
	m.TS = s.Put(Post{Channel: m.Channel, TS: m.TS, ThreadTS: m.ThreadTS, User: m.User, Text: m.Text}).TS
	deliveries := []Delivery{s.PushRaw(EventsAPI, m.Event())}
	mentioned := strings.Contains(m.Text, "<@"+s.options.BotUser+">") || strings.Contains(m.Text, "<@"+s.options.BotUser+"|")
	if mentioned && m.ChannelType != "im" {
		deliveries = append(deliveries, s.PushRaw(EventsAPI, m.Mention()))
	}
	return m, deliveries
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
		values.Set(name, argument(raw))
	}
	return values
}
