package payload

import (
	"time"

	"parley/ingest/event"
)

// IsWithheldNotice reports whether Slack says in the payload that it withholds events.
func (p *Payload) IsWithheldNotice() bool { return p.withheld }

// StartedThread returns the assistant thread whose start the payload reports. It returns false for any
// other payload, and for the event of another team or app than self.
func (p *Payload) StartedThread(self event.Self) (channel, thread string, ok bool) {
	ok = p.assistant != nil && p.assistant.started && p.earlyResult(self) == nil
	return p.channel, p.ts, ok
}

// MessageAt returns the channel and the time of the message that the payload brings. It returns false for
// any other payload, and for one that needs no further processing.
func (p *Payload) MessageAt() (channel string, at time.Time, ok bool) {
	if p.result != nil || p.kind != event.KindMessage {
		return "", time.Time{}, false
	}
	return p.channel, SentAt(p.ts), true
}
