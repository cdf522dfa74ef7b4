package live

import (
	"cmp"
	"context"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
)

// recentAge is the age up to which a webhook waits for the rows before its own, and the
// server is asked for an unknown message that has changed. After its restart, the server
// repeats the webhooks of a week.
const recentAge = 24 * time.Hour

// take hands over rows that were read.
func (rc *Receiver) take(ctx context.Context, inbox adapters.Inbox, rows []event.Envelope) error {
	return cmp.Or(adapters.InOrder(ctx, len(rows), func(i int, placed func(), batch *event.Batch) error {
		rows[i].Queued, rows[i].Batch = placed, batch
		return rc.accept(ctx, inbox, rows[i])
	})...)
}

// accept makes an envelope durable, unless this process has accepted the same state of its
// message last, or a later one. If it is about an unknown message, or its files came late, the server is
// asked for the message with its chat.
func (rc *Receiver) accept(ctx context.Context, inbox adapters.Inbox, envelope event.Envelope) error {
	p := payload.Parse(envelope)
	if rc.progress.isTaken(p) {
		return nil
	}
	if p.Chat != nil {
		rc.client.Chats.Saw(p.Chat.GUID, rc.date(p))
	}
	receipt, err := inbox.Accept(ctx, envelope)
	if err != nil {
		return err
	}
	waits := receipt.Waits && p.Kind == event.KindEdit
	rc.progress.took(p, !waits)
	if (waits || p.HasLateFile()) && rc.isRecent(p) {
		rc.askMessage(ctx, inbox, p.GUID)
	}
	return nil
}

// isRecent reports whether a message is not older than recentAge, as far as its payload shows.
func (rc *Receiver) isRecent(p *payload.Payload) bool {
	return p.Created.IsZero() || rc.client.Now().Sub(p.Created) < recentAge
}

// askMessage asks the server for a message and its chat, and hands it over. If that fails, the
// payload that waits for the message is ignored later.
func (rc *Receiver) askMessage(ctx context.Context, inbox adapters.Inbox, guid string) {
	ctx, cancel := context.WithTimeout(ctx, readWait)
	defer cancel()
	raw, err := rc.client.Message(ctx, guid)
	if err != nil {
		return
	}
	if row := rc.client.Row(raw); payload.Parse(row).Err == nil && payload.Parse(row).Chat != nil {
		_ = rc.accept(ctx, inbox, row)
	}
}
