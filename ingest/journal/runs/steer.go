package runs

import (
	"context"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/places"
	"parley/ingest/journal/storage"
)

// Joinable returns the messages that may join the run, by time: those that wait for its agent.
func (r *Runs) Joinable(ctx context.Context, run *Run) ([]messages.Message, error) {
	if run.Named {
		return nil, nil
	}
	return storage.Read(ctx, r.db, func(tx *storage.Txn) []messages.Message {
		return messages.Lines(tx, messages.Joins+` AND EXISTS (SELECT 1 FROM threads WHERE id = $1 AND run_id = $4) ORDER BY m.sent_at, m.seq`, run.Thread, run.Agent, nil, run.ID)
	})
}

// JoinRun gives the run a message that its agent has taken, unless the message, or every message
// of the run, was deleted meanwhile. An edit that the agent has not seen makes the reply stale. It
// fails with ErrFenced if the run has ended. A call with an unknown outcome may be repeated.
func (r *Runs) JoinRun(ctx context.Context, claim *places.Claim, run *Run, m *messages.Message) error {
	return r.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		var left int64
		lockRun(tx, claim, run, []any{&left}, `run_left`)
		if left > 0 && join(tx, run, m.Row) > 0 {
			messages.Changed(tx, run.Thread)
			tx.Do(`UPDATE threads SET run_left = run_left + 1, `+keepBotChannel+`,
				run_edited_at = coalesce((SELECT edited_at FROM messages WHERE row = $2 AND edited_at > $3), run_edited_at),
				turn_since = CASE WHEN EXISTS (SELECT 1 FROM messages WHERE `+messages.Waits+`) THEN turn_since END WHERE id = $1`, run.Thread, m.Row, storage.Millis(m.EditedAt))
		}
	})
}
