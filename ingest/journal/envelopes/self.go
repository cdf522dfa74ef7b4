package envelopes

import (
	"context"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// SetSelf stores our identity in a workspace, and makes the envelopes due that wait for
// it. It does not write a known identity again. After an error, some of the envelopes may
// stay postponed until their time.
func (e *Envelopes) SetSelf(ctx context.Context, workspace string, self event.Self) error {
	if err := threads.StoreSelf(ctx, e.db, workspace, self); err != nil {
		return err
	}
	now := storage.Millis(e.db.Now())
	late, err := threads.LaterIntakes(ctx, e.db, workspace, now)
	if err != nil {
		return err
	}
	return e.db.EachThread(ctx, late, func(tx *storage.Txn, thread int64) {
		threads.HastenIntake(tx, thread, now)
		// The state is named for the index of pending envelopes.
		tx.Do(`UPDATE envelopes SET not_before = 0 WHERE thread = $1 AND state = 'pending' AND not_before > $2`, thread, now)
	})
}
