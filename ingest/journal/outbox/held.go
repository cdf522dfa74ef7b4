package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/ingest/journal/files"
	"parley/ingest/journal/storage"
)

// Dropped is the state of a delivery that an operator has given up, and of a refused notice about a refused reply.
const Dropped State = "dropped"

// The refusals of changes to a delivery by an operator.
var (
	// ErrOpen means that the delivery has not ended: the daemon still works on it.
	ErrOpen = errors.New("it has not ended: it is still being sent")
	// ErrEmptied means that the delivery has no contents any more.
	ErrEmptied = errors.New("its text was removed by retention or because the answer was deleted; drop it")
)

// SentError means that the post of a delivery is on the platform.
type SentError struct{ PostID string }

// Error names the post.
func (e SentError) Error() string { return "it is there: " + e.PostID }

// held is the condition that a delivery has ended without a post and was not given up by an operator.
const held = `state IN ('unknown', 'failed')`

// followers is the condition for the later parts of a reply that failed with an earlier one: $1 is the run,
// $2 the earlier part. Of some, the preview is removed instead.
const followers = `run = $1 AND part > $2 AND (kind = 'remove' AND state IN ('pending', 'sent') OR state = 'failed' AND error = '` + earlierFailed + `')`

// HeldDelivery returns a delivery that has ended without a post. It fails with ErrNotFound if there is no such
// delivery, with ErrOpen if it has not ended, with a SentError if it was sent, and with ErrDelivered if an
// operator has given it up.
func (o *Outbox) HeldDelivery(ctx context.Context, id int64) (d *Delivery, err error) {
	d, err = storage.Read(ctx, o.db, func(tx *storage.Txn) *Delivery { return read(tx, `WHERE d.id = $1`, id) })
	switch {
	case err != nil:
		return nil, err
	case d == nil:
		return nil, storage.ErrNotFound
	}
	return d, d.held()
}

// held returns the error for which a delivery is not held; nil if it is.
func (d *Delivery) held() error {
	switch d.State {
	case Unknown, Failed:
		return nil
	case Sent:
		return SentError{d.PlatformID}
	case Dropped:
		return fmt.Errorf("it was dropped: %w", ErrDelivered)
	}
	return ErrOpen
}

// ResendHeld makes a held delivery pending again, and the later parts of its reply that failed with it. It
// fails with ErrDelivered if the delivery has changed since d was read. The posts of the thread go on in
// their order.
func (o *Outbox) ResendHeld(ctx context.Context, d *Delivery) error {
	now := storage.Millis(o.db.Now())
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		var part int64
		if !tx.Row([]any{&part}, `UPDATE deliveries SET state = 'pending', due_at = $3, created_at = $3, reserved_at = 0, error = 'an operator sends it again'
			WHERE id = $1 AND attempts = $2 AND (payload <> '' OR file <> '') AND `+held+` RETURNING part`, d.ID, d.Attempts, now) {
			tx.Fail(ErrDelivered)
		}
		if part >= 0 && d.State == Failed {
			tx.Do(`UPDATE deliveries SET state = 'pending', kind = 'post', due_at = $3, created_at = $3, reserved_at = 0, error = '',
				replaces = CASE WHEN state = 'sent' THEN 0 ELSE replaces END WHERE `+followers, d.Run, part, now)
		}
	})
}

// ConfirmDelivery ends a held delivery: an operator has seen its post on the platform, which has this id. A
// repetition changes nothing. Its errors are those of HeldDelivery, and a SentError if another
// post was recorded.
func (o *Outbox) ConfirmDelivery(ctx context.Context, id int64, platformID string) error {
	d, err := o.HeldDelivery(ctx, id)
	switch sent, ok := errors.AsType[SentError](err); {
	case ok && sent.PostID == platformID:
		return nil
	case err != nil:
		return err
	}
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		var other int64
		if tx.Row([]any{&other}, `SELECT id FROM deliveries WHERE workspace = $1 AND platform_id = $2 AND id <> $3`, d.Workspace, platformID, id) {
			tx.Fail(fmt.Errorf("%s is the post of delivery %d", platformID, other))
		}
		tx.Must(ErrDelivered, `UPDATE deliveries SET state = 'sent', platform_id = $3, error = '' WHERE id = $1 AND attempts = $2 AND `+held,
			id, d.Attempts, platformID)
	})
}

// DropDelivery gives up a held delivery and the later parts of its reply that failed with it, and empties
// them. A repetition changes nothing. Its errors are those of HeldDelivery.
func (o *Outbox) DropDelivery(ctx context.Context, id int64) error {
	d, err := o.HeldDelivery(ctx, id)
	switch {
	case err != nil && d != nil && d.State == Dropped:
		return nil
	case err != nil:
		return err
	}
	return o.db.Change(ctx, d.ThreadKey, func(tx *storage.Txn) {
		var part int64
		if !tx.Row([]any{&part}, `SELECT part FROM deliveries WHERE id = $1 AND attempts = $2 AND `+held+` FOR UPDATE`, id, d.Attempts) {
			tx.Fail(ErrDelivered)
		}
		drop(tx, `id = $1`, id)
		if part >= 0 {
			drop(tx, followers+` AND state = 'failed'`, d.Run, part)
		}
	})
}

// drop gives up the deliveries that meet a condition.
func drop(tx *storage.Txn, condition string, args ...any) {
	for _, column := range storage.Rows(tx, storage.Self[string], `SELECT file FROM deliveries WHERE file <> '' AND `+condition, args...) {
		var file File
		if tx.Fail(storage.Unpack(column, &file)); file.Path != "" {
			files.CheckCopy(tx, file.Bucket, file.Path, time.Time{})
		}
	}
	tx.Do(`UPDATE deliveries SET state = 'dropped', payload = '', file = '', buttons = '', card = '' WHERE `+condition, args...)
}
