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
		threads.Lock(tx, claim, []any{new(int64)}, `id`) // no envelope can be added during the count
		tx.Do(`UPDATE threads SET
			pending   = (SELECT count(*) FROM envelopes WHERE thread = $1 AND state = 'pending'),
			intake_at = (SELECT not_before FROM envelopes WHERE thread = $1 AND state = 'pending' ORDER BY id LIMIT 1)
			WHERE id = $1`, claim.Thread)
	})
}

// IntakeDone is the condition that a thread's intake has recorded what is due at $3, and that no
// envelope waits for the thread to admit it.
const IntakeDone = `(pending = 0 OR intake_at IS NULL OR intake_at > $3) AND NOT ` + Missed

// Missed is the condition that envelopes wait for messages that a thread has. On PostgreSQL, if a
// message is recorded while an envelope about it is accepted, neither transaction sees the other's
// row. Few envelopes wait, so the condition begins with them.
const (
	Missed = `EXISTS (SELECT 1 FROM envelopes e WHERE e.workspace = threads.workspace AND e.state = 'pending' AND e.thread IS NULL
		AND EXISTS (` + target + ` AND m.thread = threads.id))`
	target = `SELECT 1 FROM messages m WHERE m.workspace = e.workspace AND m.external_id = e.message_id`
)
