package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

// wireFrame has the fields of a frame that concern the connection.
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

// envelopes are the types of frames that need an acknowledgement.
var envelopes = []string{"events_api", "slash_commands", "interactive"}

// envelopeID finds the id in a frame that can't be decoded.
var envelopeID = regexp.MustCompile(`"envelope_id"\s*:\s*"([0-9A-Za-z._-]{1,128})"`)

// readFrame decodes a frame as far as possible. It returns false if the frame is not a
// JSON object.
func readFrame(raw []byte) (f wireFrame, readable bool) {
	err := json.Unmarshal(raw, &f)
	readable = payload.IsObject(raw) && (err == nil || json.Valid(raw))
	if f.EnvelopeID == "" {
		if found := envelopeID.FindSubmatch(raw); found != nil {
			f.EnvelopeID = string(found[1])
		}
	}
	return f, readable
}

// handle handles one frame. An error ends the socket.
func (c *socket) handle(raw []byte) error {
	f, readable := readFrame(raw)
	switch {
	case f.Type == "hello":
		c.hello(f)
	case f.Type == "disconnect":
		return c.disconnect(f.Reason)
	case f.EnvelopeID != "", !readable, slices.Contains(envelopes, f.Type):
		c.accept(f, raw)
	default:
		c.set.link.Log.Debug("unknown frame type ignored", "type", event.Text(f.Type))
	}
	return nil
}

// hello handles Slack's hello: events arrive over this socket from now on.
func (c *socket) hello(f wireFrame) {
	if c.gotHello {
		return
	}
	c.gotHello = true
	c.set.link.Log.Debug("slack socket opened", "connections", f.NumConnections)
	c.set.connected(f.ConnectionInfo.AppID)
	c.others = c.set.countOthers(f.NumConnections)
	close(c.ready)
	if c.replaces != nil {
		c.replaces.flush()
		c.replaces = nil // otherwise a chain would keep all earlier sockets alive
	}
}

// disconnect handles Slack's request to replace the socket, or Slack's refusal of it.
// https://docs.slack.dev/apis/events-api/using-socket-mode#disconnect
func (c *socket) disconnect(reason string) error {
	switch {
	case reason == "link_disabled":
		return &adapters.RefusedError{
			Err:  errors.New("slack closed the socket: link_disabled"),
			Hint: "Socket Mode is switched off: turn it on under Socket Mode in the app's settings, or set mode: http",
		}
	case reason == "too_many_websockets":
		return errTooMany
	case !c.gotHello:
		return fmt.Errorf("slack closed the socket before its hello: %q", event.Text(reason))
	case !c.leaveAsked:
		c.leaveAsked = true
		close(c.leaving)
	}
	return nil
}

// accept starts the durable accept of a frame, and the acknowledgement that follows it. It
// returns before either ends, when the frame has its place in the order of the commits, for
// which it waits for orderWait at most: so the frames are accepted in the order of their
// arrival, whichever sockets carried them, and the agent reads the earlier message first. The
// inbox bounds the frames that wait for their durable accept, by their size and their time.
func (c *socket) accept(f wireFrame, raw []byte) {
	s, at, p := c.set, c.set.receiver.client.Now(), payload.Parse(raw)
	if !c.begin() {
		s.noteRejected(f, p)
		return
	}
	envelope := event.Envelope{
		Workspace: s.receiver.workspace, Platform: event.Slack, Transport: "socket", ReceivedAt: at, Body: raw,
		Retried: f.RetryAttempt > 0, Parsed: p,
	}
	placed := make(chan struct{})
	envelope.Queued = sync.OnceFunc(func() { close(placed) })
	s.placing <- struct{}{}
	defer func() { <-s.placing }()
	go func() {
		defer func() {
			envelope.Queued()
			c.finish()
		}()
		c.acceptEnvelope(f, envelope)
	}()
	await(placed, s.times.OrderWait)
}

// acceptEnvelope passes a frame to the inbox, and acknowledges it if it is durable. The inbox
// logs the reason if it is not.
func (c *socket) acceptEnvelope(f wireFrame, envelope event.Envelope) {
	switch err := c.set.accept(envelope); {
	case err != nil:
		c.set.noteRejected(f, payload.Of(envelope))
	case f.EnvelopeID != "":
		c.acknowledge(f.EnvelopeID)
	}
}

// noteRejected notes a frame that was not accepted. If it was Slack's last retry, the event is
// lost, and its message must be read from Slack.
func (s *sockets) noteRejected(f wireFrame, p *payload.Payload) {
	if channel, at, ok := p.MessageAt(); ok && f.RetryAttempt >= lastRetry {
		s.link.Missed(channel, at)
	}
}

// acknowledge tells Slack not to send the envelope again. If the acknowledgement can't
// be written, Slack sends the envelope again, and the journal recognises it as a
// duplicate.
func (c *socket) acknowledge(id string) {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.set.times.Write))
	if err := c.conn.WriteJSON(map[string]string{"envelope_id": id}); err != nil {
		c.set.link.Log.Debug("acknowledgement not written", "err", err)
		_ = c.conn.Close()
	}
}
