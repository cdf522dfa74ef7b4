package journal

import (
	"context"

	"parley/ingest/journal/places"
	"parley/ingest/journal/storage"
)

// CorrectPending derives a thread's count of pending envelopes, and the time at which
// they are due, from the envelopes. Intake calls it if it finds no due envelope, because
// a wrong count blocks the thread's turns. It writes nothing if the thread's row is
// right.
func (j *Journal) CorrectPending(ctx context.Context, claim *places.Claim) error {
	due, err := j.db.Row(ctx, []any{new(int64)}, `SELECT 1 FROM threads WHERE id = $1 AND (intake_at <= $2 OR intake_at IS NULL AND pending <> 0)`,
		claim.Thread, storage.Millis(j.db.Now()))
	if err != nil || !due {
		return err
	}
	return j.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		places.Lock(tx, claim, []any{new(int64)}, `id`) // no envelope can be added during the count
		tx.Do(`UPDATE threads SET
			pending   = (SELECT count(*) FROM envelopes WHERE thread = $1 AND state = 'pending'),
			intake_at = (SELECT not_before FROM envelopes WHERE thread = $1 AND state = 'pending' ORDER BY id LIMIT 1)
			WHERE id = $1`, claim.Thread)
	})
}
