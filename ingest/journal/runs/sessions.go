package runs

import (
	"context"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Session returns what the agent of a run has kept of its conversation about a thread, which it knows by an id; empty if it has kept nothing,
// or if that was forgotten.
func (r *Runs) Session(ctx context.Context, run *Run, known string) (session string, err error) {
	_, err = r.db.Row(ctx, []any{&session}, `SELECT session FROM agent_sessions WHERE thread = $1 AND agent = $2 AND known = $3`, run.Thread, run.Agent, known)
	return session, err
}

// Sessions returns what an agent has kept of its conversations about a thread.
func (r *Runs) Sessions(ctx context.Context, thread int64, agent string) ([]string, error) {
	return storage.List(ctx, r.db, storage.Self[string], `SELECT session FROM agent_sessions WHERE thread = $1 AND agent = $2 AND session <> ''`, thread, agent)
}

// KeepSession stores what Session returns to later runs. It stores nothing if words of the thread were forgotten since the run began: the
// agent may remember them. With take, it also does what TakeRun does. It fails with ErrFenced if the claim or the run has ended.
func (r *Runs) KeepSession(ctx context.Context, claim *threads.Claim, run *Run, known, session string, take bool) error {
	return r.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		if take {
			threads.TakeRun(tx, claim, run.ID, true)
		} else {
			lockRun(tx, claim, run, []any{new(int64)}, `id`)
		}
		tx.Do(`INSERT INTO agent_sessions (thread, agent, known, session) SELECT $1, $2, $3, $4
			WHERE NOT EXISTS (SELECT 1 FROM agent_sessions WHERE thread = $1 AND agent = $2 AND known = $5)
			ON CONFLICT (thread, agent, known) DO UPDATE SET session = excluded.session`, run.Thread, run.Agent, known, session, run.ID)
	})
}

// ForgetSessions lets each agent begin a new conversation about a thread. The conversation of an unfinished run will not be kept: an empty
// session under the run's id says so.
func ForgetSessions(tx *storage.Txn, thread int64) {
	tx.Do(`DELETE FROM agent_sessions WHERE thread = $1`, thread)
	tx.Do(`INSERT INTO agent_sessions (thread, agent, known, session) SELECT id, agent, run_id, '' FROM threads WHERE id = $1 AND run_id IS NOT NULL`, thread)
}
