package runs

import (
	"context"
	"errors"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

// ErrNotFailed means that a run cannot be asked again, because it did not fail.
var ErrNotFailed = errors.New("the run has not failed")

// ErrAskedAgain means that nothing is left to ask again: the messages of the run have another run since, or were deleted.
var ErrAskedAgain = errors.New("the messages of the run were asked again before, or were deleted")

// Again is a turn that is due again.
type Again struct {
	Thread   int64
	Agent    string
	Owner    string // the node that has the thread's claim; empty for none
	Messages int64  // those of the failed run
}

// RetryRun lets the messages of a failed run wait for another run, which is due at once. The failed run and its notice
// stay. It needs no claim: the thread's worker takes the messages like new ones. It returns ErrNotFailed for
// another run, ErrAskedAgain if the run has no messages any more, and ErrNotFound if it is unknown.
//
// If no other run has begun in the thread since, the new run gets the passive messages of the failed one too.
func (r *Runs) RetryRun(ctx context.Context, run string) (Again, error) {
	return storage.Write(ctx, r.db, storage.WriteOptions{}, func(tx *storage.Txn) (a Again) {
		var state string
		if !tx.Row([]any{&a.Thread, &state, &a.Agent}, `SELECT thread, state, agent FROM runs WHERE id = $1`, run) {
			if tx.Has(`SELECT 1 FROM threads WHERE run_id = $1`, run) {
				tx.Fail(ErrNotFailed)
			}
			tx.Fail(storage.ErrNotFound)
			return a
		}
		if state != string(Failed) && state != string(Dropped) {
			tx.Fail(ErrNotFailed)
			return a
		}
		tx.Row([]any{&a.Owner}, `SELECT owner FROM threads WHERE id = $1 FOR UPDATE`, a.Thread)
		var after, base int64
		tx.Row([]any{&after, &base}, `SELECT context_after, base_seq FROM messages WHERE run = $1 AND context_after IS NOT NULL`, run)
		if a.Messages = messages.AskAgain(tx, run); a.Messages == 0 {
			tx.Fail(ErrAskedAgain)
			return a
		}
		messages.Changed(tx, a.Thread)
		tx.Do(`UPDATE threads SET agent = CASE WHEN run_id IS NULL AND turn_since IS NULL THEN $2 ELSE agent END, turn_since = coalesce(turn_since, $3), turn_at = $3,
			begun_seq = CASE WHEN begun_seq = $5 AND run_id IS NULL THEN CAST($4 AS BIGINT) ELSE begun_seq END WHERE id = $1`,
			a.Thread, a.Agent, storage.Millis(r.db.Now()), after, base)
		return a
	})
}
