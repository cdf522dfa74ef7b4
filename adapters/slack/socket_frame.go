package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"parley/ingest/event"
)

// wireFrame is what a socket says, as far as the connection is concerned.
// https://docs.slack.dev/apis/events-api/using-socket-mode
type wireFrame struct {
	Type       string `json:"type"`
	EnvelopeID string `json:"envelope_id"`

	Reason string `json:"reason"` // of a disconnect

	NumConnections int            `json:"num_connections"` // of a hello
	ConnectionInfo wireConnection `json:"connection_info"`

	RetryAttempt int `json:"retry_attempt"`
}

type wireConnection struct {
	AppID string `json:"app_id"`
}

// envelopes are the types of frames that are to be acknowledged.
var envelopes = []string{"events_api", "slash_commands", "interactive"}

// envelopeID finds the id in a frame that can't be decoded.
var envelopeID = regexp.MustCompile(`"envelope_id"\s*:\s*"([0-9A-Za-z._-]{1,128})"`)

// readFrame reads what it can; false means that the frame is no JSON object.
func readFrame(raw []byte) (f wireFrame, readable bool) {
	faults := unmarshal(raw, &f, "")
	readable = faults == nil || isObject(raw) && json.Valid(raw)
	if f.EnvelopeID == "" {
		if found := envelopeID.FindSubmatch(raw); found != nil {
			f.EnvelopeID = string(found[1])
		}
	}
	return f, readable
}

// handle does what a frame asks for; an error ends the socket.
func (c *socket) handle(raw []byte) error {
	f, readable := readFrame(raw)
	switch {
	case f.Type == "hello":
		c.hello(f)
	case f.Type == "disconnect":
		return c.disconnect(f.Reason)
	case f.EnvelopeID != "", !readable, slices.Contains(envelopes, f.Type):
		c.take(f, raw)
	default:
		c.set.link.Log.Debug("a frame of slack that says nothing to us", "type", event.Text(f.Type))
	}
	return nil
}

// hello is Slack's word that events arrive over this socket from now on.
func (c *socket) hello(f wireFrame) {
	if c.hailed {
		return
	}
	c.hailed = true
	c.set.link.Log.Debug("a socket of slack is open", "connections", f.NumConnections)
	c.set.greeted(f.ConnectionInfo.AppID)
	close(c.greeted)
	if c.before != nil {
		c.before.catchUp()
		c.before = nil // else there were a chain of all that ever were
	}
}

// disconnect is Slack's word that the socket shall go, or may not be.
// https://docs.slack.dev/apis/events-api/using-socket-mode#disconnect
func (c *socket) disconnect(reason string) error {
	switch {
	case reason == "link_disabled":
		return errLinkDisabled()
	case reason == "too_many_websockets":
		return errTooMany
	case !c.hailed:
		return fmt.Errorf("slack closed the socket before its hello: %q", event.Text(reason))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked {
		c.asked = true
		close(c.leaving)
	}
	return nil
}

// take sees a frame into custody, and acknowledges it then. It returns before that,
// and waits for room at most for a moment, in which no ping is answered. What finds
// none is like what the store can't take: Slack sends it again.
func (c *socket) take(f wireFrame, raw []byte) {
	s, at := c.set, c.set.adapter.now()
	if !claim(s.slots, s.times.slot) {
		s.warn("a frame found no room and is left for slack to send again", "under_way", maxUnderWay)
		s.untaken(f)
		return
	}
	if !c.begin() {
		<-s.slots
		return
	}
	p := parse(raw)
	before, after := s.order.enter(p.lane())
	go func() {
		defer func() {
			after()
			<-s.slots
			c.finish()
		}()
		if before != nil {
			await(before, s.times.lead)
		}
		if s.custody(f, raw, p, at) && f.EnvelopeID != "" {
			c.acknowledge(f.EnvelopeID)
		}
	}()
}

// custody says whether the frame is durable now. The inbox logs why it is not.
func (s *sockets) custody(f wireFrame, raw []byte, p *payload, at time.Time) bool {
	err := guarded(func() error {
		return s.accept(event.Envelope{
			Workspace: s.adapter.Workspace, Platform: event.Slack, Transport: "socket", ReceivedAt: at, Body: raw,
			Retried: f.RetryAttempt > 0, Parsed: p,
		})
	})
	if p := new(panicError); errors.As(err, &p) {
		s.link.Log.Error("taking custody panicked", "panic", p.value, "stack", string(p.stack))
	}
	if err != nil {
		s.untaken(f)
		return false
	}
	s.mu.Lock()
	lost := s.lost
	s.mu.Unlock()
	if lost {
		s.change(func() {
			s.gaps++
			s.lost = false
		})
	}
	return true
}

// untaken notes a frame that there is no custody for. If it was Slack's last
// attempt, the event is missed, as if no socket had been open.
func (s *sockets) untaken(f wireFrame) {
	if f.RetryAttempt >= lastRetry {
		s.mu.Lock()
		s.lost = true
		s.mu.Unlock()
	}
}

// acknowledge tells Slack that it need not send the envelope again. Where that
// fails it will, and it is known then.
func (c *socket) acknowledge(id string) {
	ack, _ := json.Marshal(map[string]string{"envelope_id": id}) // a text always encodes
	if err := c.write(ack); err != nil {
		c.set.link.Log.Debug("an acknowledgement was not written", "err", err)
		_ = c.conn.Close()
	}
}

// order lets the frames of one conversation into custody as they came, whichever
// sockets they came over: what is said first shall be read first, and the store
// does not promise that of what it is given at the same time. A frame waits for the
// one before, unless that takes long: where commits are slow they must be shared.
type order struct {
	mu   sync.Mutex
	last map[event.ThreadKey]chan struct{}
}

// lane is the conversation that a frame is about, as far as it says so itself;
// empty where it is about none.
func (p *payload) lane() event.ThreadKey {
	if p.channel == "" {
		return ""
	}
	root := ""
	if p.message != nil {
		root = p.message.ThreadTS
	}
	return ThreadKey("", p.told(), p.ts, root)
}

// enter returns what to wait for, and what to call after that.
func (o *order) enter(lane event.ThreadKey) (before <-chan struct{}, after func()) {
	if lane == "" {
		return nil, func() {}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last == nil {
		o.last = map[event.ThreadKey]chan struct{}{}
	}
	before, own := o.last[lane], make(chan struct{})
	o.last[lane] = own
	return before, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.last[lane] == own {
			delete(o.last, lane)
		}
		close(own)
	}
}
