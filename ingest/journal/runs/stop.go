package runs

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Stopped is a run that a person has stopped.
type Stopped struct {
	Thread int64
	Agent  string
	Owner  string // the node that has the thread's claim; empty for none

	end *endRunTx
}

// StopRun ends an unfinished run without an answer, because a person wants none. It needs no
// claim: a worker that has the run can write nothing about it afterwards. The notice informs
// the thread. StopRun returns ErrEnded if the run has ended and ErrNotFound if it is unknown.
func (r *Runs) StopRun(ctx context.Context, run string, notice outbox.Notice) (Stopped, error) {
	s, err := storage.Write(ctx, r.db, storage.WriteOptions{}, func(tx *storage.Txn) (s Stopped) {
		if !tx.Row([]any{&s.Thread, &s.Agent, &s.Owner}, `SELECT id, agent, owner FROM threads WHERE run_id = $1 FOR UPDATE`, run) {
			failEnded(tx, run)
			return s
		}
		s.end = stopping(tx, s.Thread, storage.Millis(r.db.Now()))
		s.end.rows = r.db.Rows
		s.end.leaveRows()
		s.end.tell(notice)
		s.end.stop()
		return s
	})
	if err == nil {
		RunEnded(ctx, r.db, run, s.Thread, true, s.end.chunks) // another node may have its readers
	}
	return s, err
}

// failEnded ends the transaction because a run is not unfinished: with ErrEnded if it has ended,
// and with ErrNotFound if it is unknown.
func failEnded(tx *storage.Txn, run string) {
	if tx.Has(`SELECT 1 FROM runs WHERE id = $1`, run) {
		tx.Fail(ErrEnded)
	}
	tx.Fail(storage.ErrNotFound)
}

// UnfinishedRun returns the id of a thread's unfinished run; empty for none.
func (r *Runs) UnfinishedRun(ctx context.Context, thread int64) (run string, err error) {
	_, err = r.db.Row(ctx, []any{&run}, `SELECT run_id FROM threads WHERE id = $1`, thread)
	return run, err
}

// stopping returns the end of a thread's unfinished run. The thread must be locked.
func stopping(tx *storage.Txn, thread, now int64) *endRunTx {
	run := &Run{Place: threads.Place{Thread: thread}}
	e := &endRunTx{Txn: tx, now: now, states: true, run: run}
	tx.Row([]any{&run.ID, (*string)(&run.ThreadKey), &run.Workspace, &run.Agent, &run.BegunAt, &run.Question, &e.nextSeq},
		`SELECT run_id, key, workspace, agent, run_begun_at, run_question, next_seq FROM threads WHERE id = $1`, thread)
	readKept(tx, run)
	return e
}

// insertStopped stores a run that ended before it began: $2 is its id, $3 the time and $4 the state.
// The condition of its message follows.
const insertStopped = `INSERT INTO runs (id, thread, agent, state, begun_at, answered_at, ended_at, error)
	SELECT $2, thread, agent, $4, $3, 0, $3, 'stopped' FROM messages WHERE `

// StopWaiting ends the turn that waits in a thread without a run. The thread must be locked.
// Its messages have a run that ended before it began.
func StopWaiting(tx *storage.Txn, thread, now int64) {
	id := uuid.Must(uuid.NewV7()).String()
	tx.Do(insertStopped+`thread = $1 AND trigger = 'run' AND run IS NULL ORDER BY sent_at, seq LIMIT 1`, thread, id, now, string(Canceled))
	messages.TakeAll(tx, thread, id)
	tx.Do(`UPDATE runs SET payer = $2 WHERE id = $1`, id, payer(tx, &Run{ID: id}))
	threads.CountChange(tx, thread)
	threads.EndTurn(tx, thread)
}

// ForgetReports lets no turn wait for reports alone: see messages.ForgetReports. The thread must be locked.
func ForgetReports(tx *storage.Txn, thread int64, run string) {
	if messages.ForgetReports(tx, thread, run) > 0 {
		threads.CountChange(tx, thread)
		threads.CheckTurn(tx, thread)
	}
}

// stop ends the run. Messages that wait for a turn are due at once.
func (e *endRunTx) stop() {
	e.end(Canceled, "stopped", time.Time{})
	threads.Hasten(e.Txn, e.run.Thread, e.now)
}

// Stop ends a thread's unfinished run without an answer, because a person wants none. The thread must
// be locked. The kinds of the run's rows are rows, as storage.DB.Rows; the first one gets the thread_seq seq. Stop returns their
// number, which the caller adds to the thread.
func Stop(tx *storage.Txn, thread, now, seq int64, rows func(workspace string) []string) (added int64) {
	e := stopping(tx, thread, now)
	e.rows = rows
	added = e.addRows(e.finished(), seq)
	e.deliver(nil, nil)
	e.stop()
	return added
}

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
		threads.CountChange(tx, a.Thread)
		threads.AskAgain(tx, a.Thread, a.Agent, after, base, storage.Millis(r.db.Now()))
		return a
	})
}
