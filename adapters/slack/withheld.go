package slack

import (
	"bytes"
	"context"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// withheldFor is the time after Slack's notice for which Slack may withhold events: Slack
// counts the events by the minute, sends a notice for each minute with too many of them, and
// never sends the withheld events.
// https://docs.slack.dev/reference/events/app_rate_limited
const withheldFor = 90 * time.Second

// withheldInbox is an inbox that notes when Slack withholds events.
type withheldInbox struct {
	adapters.Inbox
	adapter *Adapter
}

// Accept implements adapters.Inbox.
func (i withheldInbox) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	receipt, err := i.Inbox.Accept(ctx, envelope)
	if err == nil && bytes.Contains(envelope.Body, []byte("app_rate_limited")) && payloadOf(envelope).withheld {
		i.adapter.withheld.Set()
	}
	return receipt, err
}
