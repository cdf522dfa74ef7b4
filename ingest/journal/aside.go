package journal

import (
	"context"
	"math"
	"time"

	"parley/ingest/event"
)

// Aside is a payload that is in custody and not yet in its thread: what was said
// before it in its channel is still to be read.
type Aside struct {
	ID       int64
	Envelope event.Envelope
}

// PutAside makes an envelope durable, once, and keeps it out of its thread until it
// is given to Accept.
func (j *Journal) PutAside(ctx context.Context, a Acceptance) (Custody, error) {
	return write(Urgent(ctx), j, func(tx Tx) (custody Custody, err error) {
		e := a.Envelope
		custody.Duplicate, err = tx.Row([]any{&custody.ID}, `SELECT id FROM envelopes WHERE workspace = ? AND dedupe_key = ?`,
			e.Workspace, a.Keys.Dedupe)
		if err != nil || custody.Duplicate {
			return custody, err
		}
		n, err := tx.Exec(`INSERT INTO aside (workspace, channel, dedupe_key, platform, transport, received_at, body)
			VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (workspace, dedupe_key) DO NOTHING`,
			e.Workspace, a.Keys.Channel.ID, a.Keys.Dedupe, string(e.Platform), e.Transport, millis(e.ReceivedAt), blob(e.Body))
		custody.Duplicate = n == 0
		return custody, err
	})
}

// AsideChannels are those of a workspace in which something is kept aside that came
// in before a time; zero for any.
func (j *Journal) AsideChannels(ctx context.Context, workspace string, before time.Time) (channels []string, err error) {
	limit := int64(math.MaxInt64)
	if !before.IsZero() {
		limit = millis(before)
	}
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		channels = nil
		return tx.Rows(func(scan func(...any) error) error {
			var channel string
			err := scan(&channel)
			channels = append(channels, channel)
			return err
		}, `SELECT DISTINCT channel FROM aside WHERE workspace = ? AND received_at < ? ORDER BY channel`, workspace, limit)
	})
	return channels, err
}

// AsideIn returns the first of what is kept aside in a channel, in the order in
// which it came.
func (j *Journal) AsideIn(ctx context.Context, workspace, channel string, limit int) (list []Aside, err error) {
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		list = nil
		return tx.Rows(func(scan func(...any) error) error {
			var a Aside
			var receivedAt int64
			err := scan(&a.ID, (*string)(&a.Envelope.Platform), &a.Envelope.Transport, &receivedAt, &a.Envelope.Body)
			a.Envelope.Workspace, a.Envelope.ReceivedAt = workspace, instant(receivedAt)
			list = append(list, a)
			return err
		}, `SELECT id, platform, transport, received_at, body FROM aside WHERE workspace = ? AND channel = ?
			ORDER BY id LIMIT CAST(? AS BIGINT)`, workspace, channel, int64(limit))
	})
	return list, err
}

// DropAside forgets what was kept aside, once Accept has it.
func (j *Journal) DropAside(ctx context.Context, id int64) error {
	return j.engine.Write(ctx, func(tx Tx) error {
		return tx.Later(nil, nil, `DELETE FROM aside WHERE id = ?`, id)
	})
}
