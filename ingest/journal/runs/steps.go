package runs

import (
	"context"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/places"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/workstreams"
)

// RunSteps returns the stored steps of a run, in their order. A step is a request to the agent that ended with
// calls of tools. Its body is the caller's.
func (r *Runs) RunSteps(ctx context.Context, run *Run) ([]string, error) {
	return storage.List(ctx, r.db, func(body *string) []any { return []any{body} }, `SELECT body FROM run_steps WHERE run = $1 ORDER BY n`, run.ID)
}

// PutStep stores step n of a run, or its new body. It fails with ErrFenced if the run has ended. A call with an
// unknown outcome may be repeated.
func (r *Runs) PutStep(ctx context.Context, claim *places.Claim, run *Run, n int, body string) error {
	return r.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		var seq int64
		lockRun(tx, claim, run, []any{&seq}, `run_seq`)
		tx.Do(`INSERT INTO run_steps (run, n, body, at) VALUES ($1, $2, $3, $4) ON CONFLICT (run, n) DO UPDATE SET body = $3`,
			run.ID, int64(n), body, storage.Millis(r.db.Now()))
		workstreams.Iterates(tx, run.ThreadKey, int64(n)+1)
	})
}

// ToldSince returns the passive messages in which Parley has told a run of its workstreams after a thread_seq.
func (r *Runs) ToldSince(ctx context.Context, run *Run, seq int64) ([]messages.Message, error) {
	return storage.Read(ctx, r.db, func(tx *storage.Txn) []messages.Message {
		return messages.Lines(tx, `m.thread = $1 AND m.seq > $2 AND m.trigger = 'passive' AND m.reason = $3 ORDER BY m.seq`, run.Thread, max(seq, run.BaseSeq), string(event.ReasonWorkstream))
	})
}
