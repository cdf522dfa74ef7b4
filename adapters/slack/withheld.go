package slack

import (
	"bytes"
	"context"
	"slices"
	"time"

	"parley/adapters"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
)

// withheldFor is the time after Slack's notice for which Slack may withhold events: Slack
// counts the events by the minute, sends a notice for each minute with too many of them, and
// never sends the withheld events.
// https://docs.slack.dev/reference/events/app_rate_limited
const withheldFor = 90 * time.Second

// withheldSince is the time from before the notice's minute until withheldFor is over. Slack
// may send the notice again for six minutes.
// https://docs.slack.dev/apis/events-api/#retries
const withheldSince = withheldFor + 8*time.Minute

// notingInbox is an inbox that also notes the payloads that concern the adapter itself: the
// notice that Slack withholds events, and the start of an assistant thread.
type notingInbox struct {
	adapters.Inbox
	adapter *Adapter
}

// notedTypes are the types of those payloads.
var notedTypes = [][]byte{[]byte("app_rate_limited"), []byte("assistant_thread_started")}

// Accept implements adapters.Inbox.
func (i notingInbox) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	receipt, err := i.Inbox.Accept(ctx, envelope)
	if err != nil || !slices.ContainsFunc(notedTypes, func(t []byte) bool { return bytes.Contains(envelope.Body, t) }) {
		return receipt, err
	}
	p := payload.Of(envelope)
	if p.IsWithheldNotice() {
		i.adapter.withheld.Set()
	}
	if !receipt.Duplicate {
		i.adapter.requestGreeting(p)
	}
	return receipt, nil
}
