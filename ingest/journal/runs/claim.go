package runs

import (
	"context"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// InputStands reports whether the messages of a run are those that its worker has read, and
// whether intake has recorded every event of the thread that is due. It fails with ErrFenced if
// the claim or the run has ended.
func (r *Runs) InputStands(ctx context.Context, claim *threads.Claim, run *Run) (stands bool, err error) {
	return threads.RunStands(ctx, r.db, claim, run.ID, run.Seen, run.counted)
}

// MessageStands is InputStands for a message that waits for a turn.
func (r *Runs) MessageStands(ctx context.Context, claim *threads.Claim, m *messages.Message) (stands bool, err error) {
	return threads.MessageStands(ctx, r.db, claim, m.Row, m.EditedAt)
}

// lockRun is lock for work on a run. The transaction also fails if the run is no longer
// the thread's.
func lockRun(tx *storage.Txn, claim *threads.Claim, run *Run, dest []any, columns string) {
	if !tx.Row(dest, `SELECT `+columns+` FROM threads WHERE id = $1 AND fence = $2 AND run_id = $3 FOR UPDATE`, claim.Thread, claim.Fence, run.ID) {
		tx.Fail(storage.ErrFenced)
	}
}
