package runs

import (
	"context"

	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// InputStands reports whether the messages of a run are those that its worker has read, and
// whether intake has recorded every event of the thread that is due. It fails with ErrFenced if
// the claim or the run has ended.
func (r *Runs) InputStands(ctx context.Context, claim *threads.Claim, run *Run) (stands bool, err error) {
	found, err := r.db.Row(ctx, []any{&stands}, `SELECT run_edited_at <= $5 AND run_left >= $6 AND `+envelopes.IntakeDone+`
		FROM threads WHERE id = $1 AND fence = $2 AND run_id = $4`,
		claim.Thread, claim.Fence, storage.Millis(r.db.Now()), run.ID, storage.Millis(run.Seen), run.counted)
	return stands, fenced(found, err)
}

// MessageStands is InputStands for a message that waits for a turn.
func (r *Runs) MessageStands(ctx context.Context, claim *threads.Claim, m *messages.Message) (stands bool, err error) {
	found, err := r.db.Row(ctx, []any{&stands}, `SELECT `+envelopes.IntakeDone+` AND EXISTS (SELECT 1 FROM messages m WHERE m.row = $4 AND m.run IS NULL AND m.edited_at = $5 AND m.deleted_at = 0)
		FROM threads WHERE id = $1 AND fence = $2`,
		claim.Thread, claim.Fence, storage.Millis(r.db.Now()), m.Row, storage.Millis(m.EditedAt))
	return stands, fenced(found, err)
}

// fenced returns ErrFenced if a read of a claimed thread's row has found none.
func fenced(found bool, err error) error {
	if err == nil && !found {
		return storage.ErrFenced
	}
	return err
}

// lockRun is lock for work on a run. The transaction also fails if the run is no longer
// the thread's.
func lockRun(tx *storage.Txn, claim *threads.Claim, run *Run, dest []any, columns string) {
	if !tx.Row(dest, `SELECT `+columns+` FROM threads WHERE id = $1 AND fence = $2 AND run_id = $3 FOR UPDATE`, claim.Thread, claim.Fence, run.ID) {
		tx.Fail(storage.ErrFenced)
	}
}
