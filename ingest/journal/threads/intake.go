package threads

import (
	"context"

	"parley/ingest/journal/storage"
)

// AddPending counts envelopes that were moved into a thread.
func AddPending(tx *storage.Txn, thread, n, now int64) {
	tx.Do(`UPDATE threads SET pending = pending + $2, intake_at = coalesce(intake_at, $3) WHERE id = $1`, thread, n, now)
}

// DropPending counts one envelope less. The transaction fails with ErrFenced if the claim has ended.
func DropPending(tx *storage.Txn, claim *Claim, now int64) {
	tx.Must(storage.ErrFenced, `UPDATE threads SET pending = pending - 1, intake_at = CASE WHEN pending > 1 THEN CAST($3 AS BIGINT) END
		WHERE id = $1 AND fence = $2`, claim.Thread, claim.Fence, now)
}

// PostponeIntake makes a thread's intake due at a time. The transaction fails with ErrFenced if the claim has ended.
func PostponeIntake(tx *storage.Txn, claim *Claim, until int64) {
	tx.Must(storage.ErrFenced, `UPDATE threads SET intake_at = $3 WHERE id = $1 AND fence = $2`, claim.Thread, claim.Fence, until)
}

// CountPending derives a thread's count of pending envelopes, and the time at which they are due, from the envelopes.
// The thread must be locked.
func CountPending(tx *storage.Txn, thread int64) {
	tx.Do(`UPDATE threads SET
		pending   = (SELECT count(*) FROM envelopes WHERE thread = $1 AND state = 'pending'),
		intake_at = (SELECT not_before FROM envelopes WHERE thread = $1 AND state = 'pending' ORDER BY id LIMIT 1)
		WHERE id = $1`, thread)
}

// LaterIntakes returns the threads of a workspace whose intake is due later than at a time.
func LaterIntakes(ctx context.Context, db *storage.DB, workspace string, now int64) ([]int64, error) {
	return storage.List(ctx, db, storage.Self[int64], `SELECT id FROM threads WHERE intake_at > $1 AND workspace = $2`, now, workspace)
}

// HastenIntake makes a thread's intake due now if it is due later.
func HastenIntake(tx *storage.Txn, thread, now int64) {
	tx.Do(`UPDATE threads SET intake_at = $1 WHERE id = $2 AND intake_at > $3`, now, thread, now)
}
