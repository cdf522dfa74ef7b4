package runs

import (
	"context"
	"encoding/json"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/workstreams"
)

// RunSteps returns the stored steps of an unfinished run, in their order. A step is a request to the agent that ended with
// calls of tools. Its body is the caller's; if it is an object, its member Results has the results of the calls, and
// ForgetResults may change them.
func (r *Runs) RunSteps(ctx context.Context, run *Run) ([]string, error) {
	return storage.List(ctx, r.db, func(body *string) []any { return []any{body} }, `SELECT body FROM run_steps WHERE run = $1 ORDER BY n`, run.ID)
}

// PutStep stores step n of a run, or its new body. It fails with ErrFenced if the run has ended. A call with an
// unknown outcome may be repeated.
func (r *Runs) PutStep(ctx context.Context, claim *threads.Claim, run *Run, n int, body string) error {
	run.Stepped = true
	return r.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		var seq int64
		lockRun(tx, claim, run, []any{&seq}, `run_seq`)
		tx.Do(`INSERT INTO run_steps (run, n, body, at) VALUES ($1, $2, $3, $4) ON CONFLICT (run, n) DO UPDATE SET body = $3`,
			run.ID, int64(n), body, storage.Millis(r.db.Now()))
		workstreams.Iterates(tx, run.ThreadKey, int64(n)+1)
	})
}

// forgotten takes the place of a result.
const forgotten = `{"error":"a message in this result was changed or deleted meanwhile: call the tool again if you need it"}`

// ForgetResults removes the results in the steps of unfinished runs of a workspace that have a message, by its UUID, because
// the message was deleted or edited. It returns whether there were any.
func ForgetResults(tx *storage.Txn, workspace, message string) (found bool) {
	type row struct {
		run  string
		n    int64
		body string
	}
	for _, s := range storage.Rows(tx, func(s *row) []any { return []any{&s.run, &s.n, &s.body} },
		`SELECT s.run, s.n, s.body FROM threads t CROSS JOIN run_steps s
		WHERE t.run_id IS NOT NULL AND t.workspace = $1 AND s.run = t.run_id AND s.body LIKE $2`, workspace, "%"+message+"%") {
		var step map[string]json.RawMessage
		var results []string
		if json.Unmarshal([]byte(s.body), &step) != nil || json.Unmarshal(step["Results"], &results) != nil {
			continue
		}
		for i := range results {
			if strings.Contains(results[i], message) {
				results[i], found = forgotten, true
			}
		}
		step["Results"], _ = json.Marshal(results) // strings
		body, _ := json.Marshal(step)              // valid JSON always encodes
		tx.Do(`UPDATE run_steps SET body = $3 WHERE run = $1 AND n = $2`, s.run, s.n, string(body))
	}
	return found
}

// ToldSince returns the passive messages in which Parley has told a run of its workstreams after a thread_seq.
func (r *Runs) ToldSince(ctx context.Context, run *Run, seq int64) ([]messages.Message, error) {
	return storage.Read(ctx, r.db, func(tx *storage.Txn) []messages.Message {
		return messages.Told(tx, run.Thread, max(seq, run.BaseSeq))
	})
}

// Joinable returns the messages that may join the run, by time: those that wait for its agent, or the reports of workstreams among
// them if the run answers one message alone.
func (r *Runs) Joinable(ctx context.Context, run *Run) ([]messages.Message, error) {
	return storage.Read(ctx, r.db, func(tx *storage.Txn) []messages.Message {
		return messages.Joinable(tx, run.Thread, run.Agent, run.ID, run.Named)
	})
}

// JoinRun gives the run a message that its agent has taken, unless the message, or every message
// of the run, was deleted meanwhile. An edit that the agent has not seen makes the reply stale. It
// fails with ErrFenced if the run has ended. A call with an unknown outcome may be repeated.
func (r *Runs) JoinRun(ctx context.Context, claim *threads.Claim, run *Run, m *messages.Message) error {
	return r.db.Change(ctx, claim.Key, func(tx *storage.Txn) {
		var left int64
		lockRun(tx, claim, run, []any{&left}, `run_left`)
		if left > 0 && join(tx, run, m.Row) > 0 {
			threads.CountChange(tx, run.Thread)
			// No person can delete a report, and a run without its question has nothing to answer.
			threads.JoinRun(tx, run.Thread, m.Row, m.EditedAt, m.Reason != event.ReasonWorkstream)
		}
	})
}
