package live

import (
	"bytes"
	"context"
	"errors"
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
// notice that Slack withholds events, a change of a user group, the start of an assistant thread, and a question in such a thread.
type notingInbox struct {
	adapters.Inbox
	receiver *Receiver
}

// threadMember and directType are in each payload of a message that a person writes in an assistant thread.
var threadMember, directType = []byte(`"thread_ts"`), []byte(`"im"`)

// notedTypes are the types of those payloads.
var notedTypes = [][]byte{[]byte("app_rate_limited"), []byte("assistant_thread_started"), []byte("subteam_")}

// Accept implements adapters.Inbox.
func (i notingInbox) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	receipt, err := i.Inbox.Accept(ctx, envelope)
	has := func(word []byte) bool { return bytes.Contains(envelope.Body, word) }
	if err != nil || !slices.ContainsFunc(notedTypes, has) && !(has(threadMember) && has(directType)) {
		return receipt, err
	}
	p := payload.Of(envelope)
	if p.IsWithheldNotice() {
		i.receiver.withheld.Set()
	}
	if !receipt.Duplicate {
		i.receiver.accepted(p)
	}
	return receipt, nil
}

// watch blocks until ctx ends. It returns a *adapters.RefusedError earlier if Slack refuses
// the bot token in a call, and then in auth.test too. After Slack has withheld events, it
// reports that messages of every channel are missing.
func (rc *Receiver) watch(ctx context.Context, link adapters.Link) (err error) {
	defer adapters.Recover(link.Log, &err)
	began, withheld, over := rc.client.Now(), rc.withheld, (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-withheld:
			withheld, over = nil, time.After(withheldFor)
		case <-over:
			since := rc.client.Now().Add(-withheldSince)
			if since.Before(began) { // the gap of the start has the older messages
				since = began
			}
			link.Missed("", since)
			withheld, over = rc.withheld, nil
		case <-rc.client.TokenRefused:
			var refused *adapters.RefusedError
			if _, _, err := rc.client.AuthTest(ctx); errors.As(err, &refused) {
				return err
			}
		}
	}
}
