package journal

import "context"

// CorrectPending derives a thread's count of pending envelopes, and the time at which
// they are due, from the envelopes. Intake calls it if it finds no due envelope, because
// a wrong count blocks the thread's turns. It writes nothing if the thread's row is
// right.
func (j *Journal) CorrectPending(ctx context.Context, claim *Claim) error {
	due, err := j.row(ctx, []any{new(int64)}, `SELECT 1 FROM threads WHERE id = $1 AND (intake_at <= $2 OR intake_at IS NULL AND pending <> 0)`,
		claim.Thread, millis(j.now()))
	if err != nil || !due {
		return err
	}
	return j.change(ctx, claim.Key, func(tx *txn) {
		tx.lock(claim, []any{new(int64)}, `id`) // no envelope can be added during the count
		tx.do(`UPDATE threads SET
			pending   = (SELECT count(*) FROM envelopes WHERE thread = $1 AND state = 'pending'),
			intake_at = (SELECT not_before FROM envelopes WHERE thread = $1 AND state = 'pending' ORDER BY id LIMIT 1)
			WHERE id = $1`, claim.Thread)
	})
}
