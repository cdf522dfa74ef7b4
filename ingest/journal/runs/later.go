package runs

import (
	"context"
	"errors"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/stream"
)

// ErrAnswered and ErrEnded are the errors of a later answer that comes too late: the run has
// an answer already, or it has ended otherwise.
var (
	ErrAnswered = errors.New("the run has an answer already")
	ErrEnded    = errors.New("the run has ended")
)

// TakeRun notes that the agent has taken a run: a later attempt does not ask it again. If taken is
// false, the agent has not taken it after all.
func (r *Runs) TakeRun(ctx context.Context, claim *threads.Claim, run *Run, taken bool) error {
	return r.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		threads.TakeRun(tx, claim, run.ID, taken)
	})
}

// Later is a run that its agent may answer later.
type Later struct {
	ID     string
	Thread int64
	Agent  string
}

// LaterRun finds a run by the id that its agent knows; see Run.AgentID. It returns ErrNotFound for an
// unknown one.
func (r *Runs) LaterRun(ctx context.Context, known string) (run Later, err error) {
	err = r.db.One(ctx, []any{&run.ID, &run.Thread, &run.Agent}, `SELECT run_id, id, agent FROM threads WHERE run_id = `+knownToAgents+`
		UNION ALL SELECT id, thread, agent FROM runs WHERE id = `+knownToAgents+` LIMIT 1`, known)
	return run, err
}

// NudgeRun makes a run due whose agent answers later and has reported that its work has gone on. It does nothing for any other run.
func (r *Runs) NudgeRun(ctx context.Context, run string) error {
	return r.db.Change(ctx, "", func(tx *storage.Txn) { threads.NudgeRun(tx, run, storage.Millis(r.db.Now())) })
}

// AnswerRun stores the later answer of a run, which makes the run due. The agent may answer
// before the attempt has ended. It returns ErrAnswered or ErrEnded if the answer comes too late. An answer
// that has one of its keys in common with the run's answer is a repetition, which does nothing.
func (r *Runs) AnswerRun(ctx context.Context, run string, said stream.Message, keys ...string) error {
	return r.db.Change(ctx, "", func(tx *storage.Txn) { answer(tx, run, said, keys, storage.Millis(r.db.Now())) })
}

// answer stores the later answer of a run, and reports false for a repetition. It fails with ErrAnswered or ErrEnded.
func answer(tx *storage.Txn, run string, said stream.Message, keys []string, now int64) bool {
	said.Details = event.Shallow(said.Details)
	if threads.AnswerRun(tx, run, tx.Pack(said, false), now) {
		for _, key := range keys {
			tx.Do(`INSERT INTO run_posts (run, key, messages, at) VALUES ($1, $2, 0, $3) ON CONFLICT DO NOTHING`, run, key, now)
		}
		return true
	}
	for _, key := range keys {
		if tx.Has(`SELECT 1 FROM run_posts WHERE run = $1 AND key = $2`, run, key) {
			return false
		}
	}
	if tx.Has(`SELECT 1 FROM threads WHERE run_id = $1 UNION ALL SELECT 1 FROM runs WHERE id = $1 AND state = 'done'`, run) {
		tx.Fail(ErrAnswered)
	}
	tx.Fail(ErrEnded)
	return false
}
