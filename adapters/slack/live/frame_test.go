package live

import (
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
)

// TestAFrameOfAClosingSocketIsRejected drops the last retry of a frame because its socket is
// closing. The event is lost, so its message must be read from Slack. An edit of an old message
// is no reason to read everything since then.
func TestAFrameOfAClosingSocketIsRejected(t *testing.T) {
	const (
		message = `"channel":"C1","user":"U1","ts":"1700000000.000100","text":"hi"`
		edit    = `"channel":"C1","ts":"1800000000.000100","subtype":"message_changed","message":{"type":"message","user":"U1","ts":"1700000000.000100","text":"ho"}`
	)
	receiver := New(call.New(call.Options{}), "acme", Settings{}, nil)
	for name, c := range map[string]struct {
		event string
		retry int
		want  string
	}{
		"a message before its last retry": {message, lastRetry - 1, ""},
		"a message":                       {message, lastRetry, "C1 1700000000.000100"},
		"an edit":                         {edit, lastRetry, ""},
	} {
		missed := ""
		link := adapters.Link{Missed: func(channel string, since time.Time) { missed = channel + " " + payload.Timestamp(since) }}
		s := &sockets{receiver: receiver, times: receiver.Times, link: link}
		closing := &socket{set: s, closing: true}
		closing.accept(wireFrame{RetryAttempt: c.retry}, []byte(`{"type":"events_api","payload":{"type":"event_callback","event":{"type":"message",`+c.event+`}}}`))
		if missed != c.want {
			t.Errorf("%s: missed %q, want %q", name, missed, c.want)
		}
	}
}
