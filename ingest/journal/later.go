package journal

import (
	"context"
	"errors"

	"parley/assembly/stream"
)

// ErrAnswered and ErrEnded are the errors of a later answer that comes too late: the run has
// an answer already, or it has ended otherwise.
var (
	ErrAnswered = errors.New("the run has an answer already")
	ErrEnded    = errors.New("the run has ended")
)

// TakeRun notes that the agent has taken a run: a later attempt does not ask it again.
func (j *Journal) TakeRun(ctx context.Context, claim *Claim, run *Run) error {
	return j.change(ctx, claim.Key, func(tx *txn) {
		tx.lockRun(claim, run, []any{new(int64)}, `id`)
		tx.take(run.ID, run.Thread, millis(j.now()))
	})
}

func (tx *txn) take(run string, thread, now int64) {
	tx.do(`INSERT INTO taken_runs (run, thread, taken_at) VALUES ($1, $2, $3) ON CONFLICT (run) DO NOTHING`, run, thread, now)
}

// Later is a run whose agent may answer later.
type Later struct {
	Thread int64
	Agent  string
}

// LaterRun finds the thread and the agent of a run. It returns ErrNotFound for an unknown
// one.
func (j *Journal) LaterRun(ctx context.Context, run string) (l Later, err error) {
	err = j.one(ctx, []any{&l.Thread, &l.Agent}, `SELECT id, agent FROM threads WHERE run_id = $1
		UNION ALL SELECT thread, agent FROM runs WHERE id = $1 LIMIT 1`, run)
	return l, err
}

// AnswerRun stores the later answer of a run, which makes the run due. The agent may answer
// before the attempt has ended. It returns ErrAnswered or ErrEnded if the answer comes too late.
func (j *Journal) AnswerRun(ctx context.Context, run string, answer stream.Message) error {
	return j.change(ctx, "", func(tx *txn) {
		now := millis(j.now())
		if tx.has(`SELECT 1 FROM taken_runs WHERE run = $1 AND content IS NOT NULL`, run) {
			tx.fail(ErrAnswered)
		}
		tx.must(ErrEnded, `UPDATE threads SET run_not_before = 0, turn_at = CASE WHEN turn_at > $2 THEN $2 ELSE coalesce(turn_at, $2) END WHERE run_id = $1`, run, now)
		tx.must(ErrAnswered, `INSERT INTO taken_runs (run, thread, taken_at, content) SELECT $1, id, $2, $3 FROM threads WHERE run_id = $1
			ON CONFLICT (run) DO UPDATE SET content = excluded.content WHERE taken_runs.content IS NULL`, run, now, tx.pack(answer, false))
	})
}
