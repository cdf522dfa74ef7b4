package slacktest

import (
	"encoding/json"
	"sync"

	"parley/adapters/slack/slacktest/internal/wire"
)

// echo is the queue of events that OnEvent has not received yet.
type echo struct {
	mu      sync.Mutex
	queue   [][]byte
	sending bool
}

// queueEvent appends an event to the queue. The caller holds the lock of its channel.
func (s *Server) queueEvent(event []byte) {
	s.echo.mu.Lock()
	defer s.echo.mu.Unlock()
	s.echo.queue = append(s.echo.queue, event)
}

// sendEvents passes the queued events to OnEvent, unless another goroutine does so already.
// It holds no lock during the call, so OnEvent may call the server.
func (s *Server) sendEvents() {
	if !s.options.Echo {
		return
	}
	e := &s.echo
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sending {
		return
	}
	e.sending = true
	for len(e.queue) > 0 {
		next := e.queue[0]
		e.queue = e.queue[1:]
		e.mu.Unlock()
		s.options.OnEvent(next)
		e.mu.Lock()
	}
	e.sending = false
}

// channelTypes are the kinds' names in events.
// https://docs.slack.dev/reference/events/message
var channelTypes = map[Kind]string{PublicChannel: "channel", PrivateChannel: "group", GroupMessage: "mpim", DirectMessage: "im"}

// messageEvent returns the event of a new message. The channel is locked.
func (c *channel) messageEvent(s *Server, p *Post) []byte {
	shown := *p
	if len(p.Files) > 0 {
		shown.Subtype = "file_share"
	}
	b := shown.appendJSON(nil, true)
	if len(p.Files) > 0 {
		b = append(b, `,"files":`...)
		b = append(b, wire.Encode(s.describeFiles(p.Files))...)
	}
	if at, there := c.search(p.ThreadTS); there && p.isReply() {
		b = wire.AppendMember(b, "parent_user_id", c.posts[at].User)
	}
	b = wire.AppendMember(b, "channel", c.id)
	b = wire.AppendMember(b, "channel_type", channelTypes[c.info.kind()])
	b = wire.AppendMember(b, "event_ts", p.TS)
	return append(b, '}')
}

// changeEvent returns the event of an edited or deleted message. The channel is locked.
// https://docs.slack.dev/reference/events/message/message_changed
// https://docs.slack.dev/reference/events/message/message_deleted
func (c *channel) changeEvent(s *Server, before, after *Post) []byte {
	ts := c.newTS(s.options.Now()) // the event has a ts of its own
	event := map[string]any{"type": "message", "hidden": true, "channel": c.id, "ts": ts, "event_ts": ts,
		"channel_type":     channelTypes[c.info.kind()],
		"previous_message": json.RawMessage(c.appendMessage(nil, s, before, true))}
	if after.Deleted {
		event["subtype"], event["deleted_ts"] = "message_deleted", after.TS
	} else {
		event["subtype"] = "message_changed"
		event["message"] = json.RawMessage(c.appendMessage(nil, s, after, true))
	}
	return wire.Encode(event)
}
