package journal

import "context"

// JoinRun gives the messages that wait for the run's agent and may join to the run, which its
// worker hands to the agent now. It returns all messages that have joined the run, by time. It
// fails with ErrFenced if the run has ended. A call with an unknown outcome may be repeated.
func (j *Journal) JoinRun(ctx context.Context, claim *Claim, run *Run) ([]Message, error) {
	return write(ctx, j, WriteOptions{Thread: claim.Key}, func(tx *txn) []Message {
		tx.lockRun(claim, run, []any{new(int64)}, `id`)
		if joined := tx.join(run); joined > 0 {
			tx.do(`UPDATE threads SET run_left = run_left + $2, `+keepBotChannel+`,
				turn_since = CASE WHEN EXISTS (SELECT 1 FROM messages WHERE `+waits+`) THEN turn_since END WHERE id = $1`, run.Thread, joined)
		}
		return tx.lines(`m.run = $1 AND m.seq > $2 AND m.deleted_at = 0 ORDER BY m.sent_at, m.seq`, run.ID, run.BaseSeq)
	})
}

// LeaveRun takes messages back that the agent did not take. They wait for the next turn.
func (j *Journal) LeaveRun(ctx context.Context, claim *Claim, run *Run, messages []Message) error {
	return j.change(ctx, claim.Key, func(tx *txn) {
		tx.lockRun(claim, run, []any{new(int64)}, `id`)
		var left int64
		for _, m := range messages {
			left += tx.exec(`UPDATE messages SET run = NULL WHERE row = $1 AND run = $2 AND deleted_at = 0`, m.Row, run.ID)
		}
		now := millis(j.now())
		if left > 0 {
			tx.do(`UPDATE threads SET run_left = run_left - $2, turn_since = coalesce(turn_since, $3), turn_at = $3 WHERE id = $1`, run.Thread, left, now)
		}
	})
}
