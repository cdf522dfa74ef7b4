package slack

import (
	"testing"
	"time"

	"parley/adapters"
)

// TestAFrameOfAClosingSocketIsRejected drops the last retry of a frame because its socket is
// closing. The event is lost, so its message must be read from Slack.
func TestAFrameOfAClosingSocketIsRejected(t *testing.T) {
	const frame = `{"type":"events_api","payload":{"type":"event_callback","event":{"type":"message","channel":"C1","user":"U1","ts":"1700000000.000100","text":"hi"}}}`
	a := New("acme", DefaultConfig())
	for retry, want := range map[int]string{lastRetry - 1: "", lastRetry: "C1 1700000000.000100"} {
		missed := ""
		link := adapters.Link{Missed: func(channel string, since time.Time) { missed = channel + " " + timestamp(since) }}
		s := &sockets{adapter: a, times: a.times, link: link}
		c := &socket{set: s, closing: true}
		c.accept(wireFrame{RetryAttempt: retry}, []byte(frame))
		if missed != want {
			t.Errorf("retry %d: missed %q, want %q", retry, missed, want)
		}
	}
}
