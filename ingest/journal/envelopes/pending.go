package envelopes

import (
	"context"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// CorrectPending derives a thread's count of pending envelopes, and the time at which
// they are due, from the envelopes. Intake calls it if it finds no due envelope, because
// a wrong count blocks the thread's turns. It writes nothing if the thread's row is
// right.
func (e *Envelopes) CorrectPending(ctx context.Context, claim *threads.Claim) error {
	due, err := e.db.Row(ctx, []any{new(int64)}, `SELECT 1 FROM threads WHERE id = $1 AND (intake_at <= $2 OR intake_at IS NULL AND pending <> 0)`,
		claim.Thread, storage.Millis(e.db.Now()))
	if err != nil || !due {
		return err
	}
	return e.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		threads.Lock(tx, claim) // no envelope can be added during the count
		threads.CountPending(tx, claim.Thread)
	})
}

// target is the query for the message for which the envelope e waits.
const target = `SELECT 1 FROM messages m WHERE m.workspace = e.workspace AND m.external_id = e.message_id`
