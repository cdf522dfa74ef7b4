package slacktest

import (
	"net/url"
	"slices"
	"time"

	"parley/adapters/slack/slacktest/internal/content"
	"parley/adapters/slack/slacktest/internal/wire"
)

// maxEphemerals bounds the stored ephemeral messages. The oldest ones are dropped first.
const maxEphemerals = 10_000

// Ephemeral is a message that only one user saw.
type Ephemeral struct {
	Channel, ThreadTS, User string
	Text                    string // as Post.Shown
	At                      time.Time
}

// Ephemerals returns the ephemeral messages in the order of their arrival.
func (s *Server) Ephemerals() []Ephemeral {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.ephemerals)
}

// postEphemeral is chat.postEphemeral. A message in a thread without replies is not shown.
// https://docs.slack.dev/reference/methods/chat.postEphemeral
func (s *Server) postEphemeral(form url.Values) []byte {
	what, code := content.Read(form, content.MaxText, s.options.refuses)
	root, hidden := form.Get("thread_ts"), false
	switch {
	case code != "":
	case form.Get("channel") == "":
		code = "channel_not_found"
	case form.Get("user") == "":
		return wire.Missing("user")
	case what.Empty():
		code = "no_text"
	default:
		c := s.channel(form.Get("channel"))
		c.mu.Lock()
		code = c.refusesPosts()
		hidden = root != "" && (c.threads[root] == nil || c.threads[root].count == 0)
		c.mu.Unlock()
	}
	if code != "" {
		return wire.Refusal(code)
	}
	var shown Post
	writeContent(what, &shown)
	at := s.options.Now()
	if hidden {
		return wire.Encode(map[string]any{"ok": true, "message_ts": Timestamp(at)})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ephemerals) == maxEphemerals {
		s.ephemerals = slices.Delete(s.ephemerals, 0, 1)
	}
	s.ephemerals = append(s.ephemerals, Ephemeral{Channel: form.Get("channel"), ThreadTS: root,
		User: form.Get("user"), Text: shown.Shown(), At: at})
	return wire.Encode(map[string]any{"ok": true, "message_ts": Timestamp(at)})
}
