package runs

import (
	"context"
	"time"

	"parley/ingest/journal/budgets"
	"parley/ingest/journal/storage"
)

// Attempt is one request of a run to its agent, as the caller of the agent has seen it. The journal numbers
// the attempts of a run, and adds its node and the time of the end. It stores none that has not begun.
type Attempt struct {
	BegunAt time.Time
	FirstAt time.Time // of the agent's first message; zero for none
	Error   string    // empty for none
	// Finish is the model's own word for the end of its answer, such as "stop", or AnswersLater; empty for none.
	Finish string
	// TokensIn and TokensOut are the server's counts; 0 if it sent none.
	TokensIn, TokensOut int64
	// InputSHA256 is the hash of the agent's input, in hexadecimal; empty if the agent got none.
	InputSHA256 string
	// Input is that input, a JSON list of messages; empty if the configuration keeps none.
	Input string
	// Pays are the counters that its tokens are added to.
	Pays []budgets.Budget
}

// AnswersLater is Attempt.Finish of an attempt after which the agent works on by itself.
const AnswersLater = "the agent answers later"

// attempted stores the attempt that ends in the transaction.
func (e *endRunTx) attempted(a Attempt) { addAttempt(e.Txn, e.run, a, e.node, e.now) }

// AddAttempt stores an attempt of a run that has ended without its worker: a person has stopped it.
func (r *Runs) AddAttempt(ctx context.Context, run *Run, a Attempt) error {
	return r.db.Change(ctx, run.ThreadKey, func(tx *storage.Txn) { addAttempt(tx, run, a, r.db.Node, storage.Millis(r.db.Now())) })
}

// lostAttempt is the error of an attempt whose process ended before it could store the attempt.
const lostAttempt = "its process ended"

// addAttempt stores an attempt of a run, behind those of the run that were lost and have no row yet. The node and
// the times of a lost one are unknown. The tokens of the attempt are paid here, so each attempt pays once.
func addAttempt(tx *storage.Txn, run *Run, a Attempt, node string, now int64) {
	for range run.Claims {
		tx.Do(`INSERT INTO run_attempts (run, n, node, begun_at, answered_at, ended_at, error, finish, tokens_in, tokens_out, input_sha256)
			SELECT $1, coalesce(max(n), 0) + 1, '', 0, 0, 0, $2, '', 0, 0, '' FROM run_attempts WHERE run = $1
			HAVING count(CASE WHEN ended_at = 0 THEN 1 END) < $3`, run.ID, lostAttempt, run.Claims)
	}
	if a.BegunAt.IsZero() {
		return
	}
	const next = `coalesce(max(n), 0) + 1`
	tx.Do(`INSERT INTO run_attempts (run, n, node, begun_at, answered_at, ended_at, error, finish, tokens_in, tokens_out, input_sha256)
		SELECT $1, `+next+`, $2, $3, $4, $5, $6, $7, $8, $9, $10 FROM run_attempts WHERE run = $1`,
		run.ID, node, storage.Millis(a.BegunAt), storage.Millis(a.FirstAt), now, a.Error, a.Finish, a.TokensIn, a.TokensOut, a.InputSHA256)
	if a.Input != "" {
		tx.Do(`INSERT INTO run_inputs (run, n, thread, at, input) SELECT $1, max(n), $2, $3, $4 FROM run_attempts WHERE run = $1
			HAVING NOT EXISTS (SELECT 1 FROM run_inputs WHERE run = $1 AND n = 0)`, run.ID, run.Thread, now, a.Input)
	}
	if tokens := a.TokensIn + a.TokensOut; tokens > 0 {
		for _, b := range a.Pays {
			budgets.Spend(tx, run.Workspace, b, tokens, now)
		}
	}
}

// ForgetInputs removes the kept inputs of a thread, because a message with words in it was deleted. The inputs of an
// unfinished run, which may have the words too, will not be kept: an empty one with the number 0 says so.
func ForgetInputs(tx *storage.Txn, thread, now int64) {
	tx.Do(`DELETE FROM run_inputs WHERE thread = $1`, thread)
	tx.Do(`INSERT INTO run_inputs (run, n, thread, at, input) SELECT run_id, 0, id, $2, '' FROM threads WHERE id = $1 AND run_id IS NOT NULL`, thread, now)
}

// Forget removes the words of a run that has ended: its events, steps and inputs, its question, and the errors of its attempts.
func Forget(tx *storage.Txn, run string) {
	DeleteEvents(tx, run)
	tx.Do(`DELETE FROM run_steps WHERE run = $1`, run)
	tx.Do(`DELETE FROM run_inputs WHERE run = $1 AND n > 0`, run)
	tx.Do(`UPDATE run_attempts SET error = '' WHERE run = $1 AND error <> $2`, run, lostAttempt)
	tx.Do(`UPDATE runs SET error = '' WHERE id = $1 AND error <> ''`, run)
	tx.Do(`UPDATE questions SET body = '{}', answer = '' WHERE run = $1 AND state <> 'open'`, run)
}

// Texts are the texts that are stored of runs, by their tables.
func Texts() []storage.Texts {
	// of is the condition that a run, by the column with its id, is of the workspace.
	of := func(run string) string {
		return `(EXISTS (SELECT 1 FROM runs r JOIN threads t ON t.id = r.thread WHERE r.id = ` + run + ` AND t.workspace = $1)
			OR EXISTS (SELECT 1 FROM threads t WHERE t.run_id = ` + run + ` AND t.workspace = $1))`
	}
	return []storage.Texts{
		{
			Page:  `SELECT e.run, e.seq, e.text, e.details FROM run_events e WHERE (e.run, e.seq) > ($2, $3) AND ` + of(`e.run`) + ` ORDER BY e.run, e.seq LIMIT 200`,
			First: []any{"", int64(0)}, Columns: 2,
			Empty: []string{`DELETE FROM run_events WHERE run = $1 AND seq = $2 AND $3 <> ''`},
		},
		{
			Page:  `SELECT i.run, i.n, i.input FROM run_inputs i WHERE (i.run, i.n) > ($2, $3) AND i.input <> '' AND ` + of(`i.run`) + ` ORDER BY i.run, i.n LIMIT 50`,
			First: []any{"", int64(-1)}, Columns: 1,
			Empty: []string{`DELETE FROM run_inputs WHERE run = $1 AND n = $2 AND $3 <> ''`},
		},
		{
			Page:  `SELECT a.run, a.n, a.error FROM run_attempts a WHERE (a.run, a.n) > ($2, $3) AND a.error <> '' AND ` + of(`a.run`) + ` ORDER BY a.run, a.n LIMIT 200`,
			First: []any{"", int64(0)}, Columns: 1,
			Empty: []string{`UPDATE run_attempts SET error = '' WHERE run = $1 AND n = $2 AND $3 <> ''`},
		},
		{
			Page:  `SELECT r.id, r.error FROM runs r JOIN threads t ON t.id = r.thread WHERE t.workspace = $1 AND r.id > $2 AND r.error <> '' ORDER BY r.id LIMIT 200`,
			First: []any{""}, Columns: 1,
			Empty: []string{`UPDATE runs SET error = '' WHERE id = $1 AND $2 <> ''`},
		},
		{
			Page:  `SELECT q.run, q.body, q.answer FROM questions q JOIN threads t ON t.id = q.thread WHERE t.workspace = $1 AND q.run > $2 AND q.state <> 'open' ORDER BY q.run LIMIT 200`,
			First: []any{""}, Columns: 2,
			Empty: []string{`UPDATE questions SET body = '{}', answer = '' WHERE run = $1 AND $2 <> ''`},
		},
		{
			Page:  `SELECT s.thread, s.session FROM agent_sessions s JOIN threads t ON t.id = s.thread WHERE t.workspace = $1 AND s.thread > $2 AND s.session <> '' ORDER BY s.thread LIMIT 200`,
			First: []any{int64(0)}, Columns: 1,
			Empty: []string{`DELETE FROM agent_sessions WHERE thread = $1 AND session <> '' AND $2 <> ''`},
		},
	}
}
