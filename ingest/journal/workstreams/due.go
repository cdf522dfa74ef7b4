package workstreams

import (
	"context"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
)

// Due is a workstream whose next step is due, with the state of its thread.
type Due struct {
	Workstream
	// Going is the unfinished run of its thread; empty for none.
	Going string
	// Waits says that a message of its thread waits for intake or for a turn, or that a workstream of its own works.
	Waits bool
	// Last is the last run of its thread that has ended.
	Last Last
	// Replies are the answers of its thread that its parent was not told of, the first one first; none unless it is Running.
	Replies []Reply

	dueAt, reported int64
}

// Last is a run of a workstream's thread that has ended.
type Last struct {
	Run   string // empty for none
	State string // as in package runs
	Error string
	Asks  bool // it has asked a question that is open
}

// Reply is an answer of a workstream.
type Reply struct {
	Run   string
	Text  string // its first MaxReply characters
	Chars int64  // of the whole answer
	Seq   int64
}

const (
	// MaxReplies bounds the replies that one step takes.
	MaxReplies = 20
	// MaxReply bounds the characters of a reply that its parent gets.
	MaxReply = 16_000
)

// Idle reports whether nothing of the thread goes on.
func (d *Due) Idle() bool { return d.Going == "" && !d.Waits }

// DueWorkstreams returns the workstreams of some workspaces whose next step is due, the longest due first.
func (s *Workstreams) DueWorkstreams(ctx context.Context, workspaces []string, limit int) ([]Due, error) {
	now := storage.Millis(s.db.Now())
	return storage.Read(ctx, s.db, func(tx *storage.Txn) []Due {
		list := storage.Rows(tx, func(d *Due) []any {
			return append(d.dest(), &d.Going, &d.Waits, &d.dueAt, &d.reported)
		}, `SELECT `+columns+`, t.run_id, coalesce(t.pending > 0 OR t.turn_since IS NOT NULL, w.said = 0)
				OR EXISTS (SELECT 1 FROM workstreams c WHERE c.parent = w.thread AND c.due_at IS NOT NULL), w.due_at, w.reported
			FROM workstreams w LEFT JOIN threads t ON t.key = w.thread WHERE w.due_at <= $1 AND $3 LIKE '%,' || w.workspace || ',%'
			ORDER BY w.due_at LIMIT CAST($2 AS BIGINT)`, now, int64(limit), storage.Between(workspaces))
		for i := range list {
			if list[i].State.Ended() {
				continue
			}
			if list[i].Idle() {
				list[i].Last = lastRun(tx, list[i].Key())
			}
			if list[i].State == Running { // the parent of another one wants no more of it
				list[i].Replies = replies(tx, &list[i])
			}
		}
		return list
	})
}

// replies returns the answers of a workstream's thread that its parent was not told of.
func replies(tx *storage.Txn, d *Due) []Reply {
	return storage.Rows(tx, func(r *Reply) []any { return []any{&r.Run, &r.Text, &r.Chars, &r.Seq} }, `SELECT run, substr(content, 1, $4), length(content), seq FROM messages
		WHERE thread = (SELECT id FROM threads WHERE key = $1) AND seq > $2 AND author = 'agent' AND run IS NOT NULL ORDER BY seq LIMIT CAST($3 AS BIGINT)`,
		string(d.Key()), d.reported, int64(MaxReplies), int64(MaxReply))
}

// lastRun returns the last run of a thread that has ended: that of its newest message with a run.
func lastRun(tx *storage.Txn, thread event.ThreadKey) (l Last) {
	tx.Row([]any{&l.Run, &l.State, &l.Error}, `SELECT r.id, r.state, r.error FROM messages m JOIN runs r ON r.id = m.run
		WHERE m.thread = (SELECT id FROM threads WHERE key = $1) AND m.seq IS NOT NULL ORDER BY m.seq DESC LIMIT 1`, string(thread))
	if l.Run != "" {
		l.Asks = tx.Has(`SELECT 1 FROM questions WHERE run = $1 AND state = 'open'`, l.Run)
	}
	return l
}

// Step is the next state of a workstream.
type Step struct {
	State          State
	Phase          Phase
	Said           int64
	Summary, Error string
	Reported       int64     // Seq of the last reply that the parent was told of; 0 for no further one
	DueAt          time.Time // of the step after it; zero for none
}

// Settle takes a step of a workstream, unless another node has taken it, or something has happened since the
// workstream was read: one that ends by itself has no message that waits. It reports whether it took the step; otherwise the workstream is still due.
func (s *Workstreams) Settle(ctx context.Context, before *Due, next Step) (bool, error) {
	now := s.db.Now()
	var due, ended any
	byItself := next.State != before.State && (next.State == Completed || next.State == Failed)
	if !next.DueAt.IsZero() {
		due = storage.Millis(next.DueAt)
	}
	switch {
	case next.State.Ended() && !before.State.Ended():
		ended = storage.Millis(now)
	case !before.EndedAt.IsZero():
		ended = storage.Millis(before.EndedAt)
	}
	taken, err := storage.Write(ctx, s.db, storage.WriteOptions{}, func(tx *storage.Txn) bool {
		taken := tx.Exec(`UPDATE workstreams SET state = $4, phase = CASE WHEN CAST($5 AS TEXT) = $12 THEN phase ELSE $5 END,
			said = $6, summary = $7, error = $8, due_at = $9, ended_at = $10, reported = $13
			WHERE id = $1 AND state = $2 AND said = $3 AND due_at = $11
				AND ($14 = 0 OR NOT EXISTS (SELECT 1 FROM threads t WHERE t.key = workstreams.thread AND (t.pending > 0 OR t.turn_since IS NOT NULL OR t.run_id IS NOT NULL)))`, before.ID, string(before.State), before.Said,
			string(next.State), string(next.Phase), next.Said, next.Summary, next.Error, due, ended, before.dueAt, string(before.Phase), max(before.reported, next.Reported), storage.Number(byItself)) > 0
		if taken {
			outbox.StateChanged(tx, before.Run, storage.Millis(now), false)
		}
		if taken && due == nil {
			RunEnded(tx, before.Of.Thread, storage.Millis(now))
		}
		return taken
	})
	if taken && err == nil {
		Changed(ctx, s.db, before.Key())
	}
	return taken, err
}

// CorrectTimes lets workstreams begin now that were launched later than a time, because the clock led. One that is due later, and
// after its deadline, is due now.
func CorrectTimes(tx *storage.Txn, now, late int64) {
	tx.Do(`UPDATE workstreams SET deadline_at = deadline_at - (launched_at - $1), launched_at = $1 WHERE due_at IS NOT NULL AND launched_at > $2`, now, late)
	tx.Do(`UPDATE workstreams SET due_at = $1 WHERE due_at > $2 AND due_at > deadline_at`, now, late)
}

// HastenAll makes each workstream due now that is due later.
func HastenAll(tx *storage.Txn, now int64) {
	tx.Do(`UPDATE workstreams SET due_at = $1 WHERE due_at > $1`, now)
}
