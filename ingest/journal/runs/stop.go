package runs

import (
	"context"
	"time"

	"github.com/google/uuid"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/workstreams"
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
		s.end.tell(notice)
		s.end.stop()
		return s
	})
	if err == nil {
		s.end.run.Followed = true // another node may have its readers
		RunEnded(ctx, r.db, s.end.run, s.end.chunks)
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
	run := &Run{Thread: thread}
	e := &endRunTx{Txn: tx, now: now, run: run}
	tx.Row([]any{&run.ID, (*string)(&run.ThreadKey), &run.Workspace, &run.Agent, &run.BegunAt, &run.Question, &e.nextSeq},
		`SELECT run_id, key, workspace, agent, run_begun_at, run_question, next_seq FROM threads WHERE id = $1`, thread)
	readShown(tx, run)
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
	tx.Do(insertStopped+messages.Waits+` ORDER BY sent_at, seq LIMIT 1`, thread, id, now, string(Canceled))
	messages.TakeAll(tx, thread, id)
	messages.Changed(tx, thread)
	tx.Do(`UPDATE threads SET turn_at = NULL, turn_since = NULL, bot_channel = NULL WHERE id = $1`, thread)
}

// stop ends the run and its workstreams. Messages that wait for a turn are due at once.
func (e *endRunTx) stop() {
	workstreams.StopOf(e.Txn, e.run.ID, e.now)
	e.end(Canceled, "stopped", time.Time{})
	e.Do(`UPDATE threads SET turn_at = $2 WHERE id = $1 AND turn_at > $2`, e.run.Thread, e.now)
}

// Stop ends a thread's unfinished run without an answer, because a person wants none. The thread must
// be locked.
func Stop(tx *storage.Txn, thread, now int64) {
	e := stopping(tx, thread, now)
	e.deliver(nil, nil)
	e.stop()
}

// NewContext lets later turns see nothing from before a thread_seq.
func NewContext(tx *storage.Txn, thread, seq int64) {
	tx.Do(`UPDATE threads SET context_from = $2 WHERE id = $1`, thread, seq)
}
