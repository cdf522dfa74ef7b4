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

// maxUnderWay bounds the envelopes that are on their way; one more is missed.
const maxUnderWay = 30_000

// The kinds of envelope, as Socket Mode names them.
const (
	EventsAPI     = "events_api"
	SlashCommands = "slash_commands"
	Interactive   = "interactive"
)

// State is how far an envelope has come.
type State string

// The ends of an envelope.
const (
	Acked   State = "acked"
	Unacked State = "unacked" // it was sent as often as Slack does, and nobody took it
	Missed  State = "missed"  // there was nobody to send it to
)

// Fate is how a delivery ended.
type Fate struct {
	State    State
	Attempts int // times that it was sent
	// Answer is what came with the acknowledgement: the payload of the socket's, or
	// the body of the hook's.
	Answer []byte
}

// Delivery is an envelope on its way to the app.
type Delivery struct{ *delivery }

type delivery struct {
	id, kind string
	payload  []byte
	acked    chan Ack // the socket's acknowledgement; it has room for it
	done     chan struct{}
	fate     Fate // once done
}

// EnvelopeID is the envelope's id in Socket Mode.
func (d Delivery) EnvelopeID() string { return d.id }

// Done is closed once the delivery has ended; a server that closes leaves it open.
func (d Delivery) Done() <-chan struct{} { return d.done }

// Wait returns how the delivery ended, or an error when ctx does.
func (d Delivery) Wait(ctx context.Context) (Fate, error) {
	select {
	case <-d.done:
		return d.fate, nil
	case <-ctx.Done():
		return Fate{}, context.Cause(ctx)
	}
}

// Push tells the app of an event: it is wrapped in an event_callback, and sent to
// the hook if there is one, else over a socket. It returns as soon as it is on its
// way; envelopes of one socket leave in the order in which they were pushed.
func (s *Server) Push(inner []byte) Delivery {
	return s.PushRaw(EventsAPI, Callback(inner, "Ev"+strings.ToUpper(strings.ReplaceAll(uuid.NewString(), "-", ""))))
}

// Callback is the event_callback that carries an event.
// https://docs.slack.dev/apis/events-api/#callback-field
func Callback(inner []byte, eventID string) []byte {
	return wrap(json.RawMessage(inner), Team, App, eventID, time.Now().Unix())
}

func wrap(event any, team, app, eventID string, at int64) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(map[string]any{ // plain texts, numbers and JSON always encode
		"type": "event_callback", "team_id": team, "api_app_id": app, "event_id": eventID,
		"event_time": at, "event": event,
		"authorizations": []map[string]any{{"team_id": team, "user_id": BotUser, "is_bot": true}},
	})
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// PushRaw sends a payload of one of the kinds as it is.
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
		s.end(d, Fate{State: Missed})
		s.running.Done()
	case hook != nil:
		go s.deliver(d, func() Fate { return s.overHook(d, *hook) })
	default:
		first := s.overSocket(d, 0, nil) // here, since order matters
		go s.deliver(d, func() Fate { return s.followUp(d, first) })
	}
	return Delivery{d}
}

// deliver sees a delivery to its end; a fate without a state is that of a server
// that stopped.
func (s *Server) deliver(d *delivery, send func() Fate) {
	defer s.running.Done()
	fate := send()
	s.hub.change(func() { s.hub.underWay-- })
	if fate.State != "" {
		s.end(d, fate)
	}
}

func (s *Server) end(d *delivery, fate Fate) {
	s.hub.change(func() {
		switch fate.State {
		case Unacked:
			s.hub.unacked++
		case Missed:
			s.hub.missed++
		}
		delete(s.hub.expected, d.id)
	})
	d.fate = fate
	close(d.done)
}

// Unacked counts the envelopes that were sent as often as Slack does, in vain.
func (s *Server) Unacked() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.unacked
}

// Missed counts the envelopes that were lost because no socket was there.
func (s *Server) Missed() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.missed
}

// UnderWay counts the envelopes whose end is not known yet.
func (s *Server) UnderWay() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.underWay
}

// repetitions are the waits before an envelope is sent again. Slack repeats events
// alone; who presses a button is told that it failed.
func (s *Server) repetitions(d *delivery) []time.Duration {
	if d.kind != EventsAPI {
		return nil
	}
	return s.options.Repeat
}

// Say places a person's message in its channel, with its TS or the channel's next
// one, and tells the app of it: by a message event and, where the text mentions the
// bot and the channel is no direct message, by an app_mention. It returns the
// message with its TS.
func (s *Server) Say(m Message) (Message, []Delivery) {
	m.TS = s.Put(Post{Channel: m.Channel, TS: m.TS, ThreadTS: m.ThreadTS, User: m.User, Text: m.Text}).TS
	deliveries := []Delivery{s.PushRaw(EventsAPI, m.Event())}
	mentioned := strings.Contains(m.Text, "<@"+s.options.BotUser+">") || strings.Contains(m.Text, "<@"+s.options.BotUser+"|")
	if mentioned && m.ChannelType != "im" {
		deliveries = append(deliveries, s.PushRaw(EventsAPI, m.Mention()))
	}
	return m, deliveries
}

// form is how an envelope that is no event is posted.
// https://docs.slack.dev/interactivity/implementing-slash-commands
func form(d *delivery) url.Values {
	if d.kind == Interactive {
		return url.Values{"payload": {string(d.payload)}}
	}
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(d.payload, &fields) // what is no object has no fields
	values := url.Values{}
	for name, raw := range fields {
		values.Set(name, argument(raw))
	}
	return values
}
