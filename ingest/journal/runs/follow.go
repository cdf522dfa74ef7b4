package runs

import (
	"context"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

// Event is a stored message of a run.
type Event struct {
	Seq int64 // 1, 2, 3 …; some may be missing
	stream.Message
}

// Status describes a run.
type Status struct {
	ID, ThreadID, Workspace string
	Platform                event.Platform
	MadeBy                  string    // the client that made the thread; empty for none
	State                   string    // running, done, failed or cancelled
	Reason                  string    // for which it was dropped; else empty
	EndedAt                 time.Time // zero while it is running
	Dropped                 int64     // number of its events that are not stored any more
}

// Ended reports whether the run has ended: no event is added any more.
func (s *Status) Ended() bool { return !s.EndedAt.IsZero() }

// Page is a part of a run's events, with the run's status at the same time. The ANSWER
// that repeats the reply and the last message of main are not stored if they say nothing
// else. Answered and Closed report whether they are; they are set for a run that has ended.
// A REQUEST_INPUT is the reply, too, if the run ended with it: other writers may add further ones.
type Page struct {
	Status
	Events           []Event
	Full             bool // more events may follow
	Answered, Closed bool
}

// RunEvents returns the events of a run after a seq, in order. It fails with ErrNotFound if
// there is no such run, or none any more. A page ends at PageBytes. A run that has ended has no chunks. While a run
// works, each of its readers calls RunEvents at each change, so that takes one query.
func (s *Runs) RunEvents(ctx context.Context, run string, after int64, limit int) (Page, error) {
	p := Page{Status: Status{ID: run}}
	found, err := storage.ReadOne(ctx, s.db, func(tx *storage.Txn) []eventRow {
		return storage.UpTo(tx, (*eventRow).size, (*eventRow).dest, runEvents, run, after, int64(max(limit, 1)))
	})
	switch {
	case err != nil:
		return p, err
	case len(found) == 0:
		return p, storage.ErrNotFound
	}
	p.Status = found[0].Status
	p.ID = run
	for _, r := range found[:min(limit, len(found))] {
		if r.Seq > 0 {
			p.Events = append(p.Events, r.Event)
		}
	}
	p.Full = storage.IsFull(found, limit, (*eventRow).size)
	if p.Ended() { // nothing changes any more
		p.State = messages.StateOf(p.State)
		_, err = s.db.Row(ctx, []any{&p.Answered, &p.Closed}, `SELECT
			EXISTS (SELECT 1 FROM run_events e JOIN messages m ON m.run = e.run AND m.author = 'agent'
				WHERE e.run = $1 AND e.workstream IN ('', 'main') AND (e.type = 7 AND e.text = m.content
					OR e.type = 9 AND EXISTS (SELECT 1 FROM questions WHERE run = $1))),
			EXISTS (SELECT 1 FROM run_events WHERE run = $1 AND type IN (4, 11) AND workstream IN ('', 'main'))`, run)
	}
	return p, err
}

// runEvents reads the status of run $1 with each of at most $3 events after $2, or with none.
const runEvents = `SELECT s.uuid, s.workspace, s.platform, s.made_by, s.state, s.reason, s.ended_at, s.dropped,
		e.seq, e.type, e.workstream, e.activity, e.text, e.details, e.final, e.at
	FROM (SELECT uuid, workspace, platform, made_by, 'running' AS state, '' AS reason, 0 AS ended_at, run_dropped AS dropped FROM threads WHERE run_id = $1
		UNION ALL SELECT t.uuid, t.workspace, t.platform, t.made_by, r.state, CASE WHEN r.state = 'dropped' THEN r.error ELSE '' END, r.ended_at, r.dropped
		FROM runs r JOIN threads t ON t.id = r.thread WHERE r.id = $1) AS s
	LEFT JOIN run_events e ON e.run = $1 AND e.seq > $2 AND (s.ended_at = 0 OR e.type <> 12)
	ORDER BY e.seq LIMIT CAST($3 AS BIGINT)`

func (r *eventRow) size() int { return len(r.Text) + len(r.Details) }

// eventRow is a run's status with one of its events; its Seq is 0 for none.
type eventRow struct {
	Status
	Event
}

func (r *eventRow) dest() []any {
	return []any{&r.ThreadID, &r.Workspace, (*string)(&r.Platform), &r.MadeBy, &r.State, &r.Reason, &r.EndedAt, &r.Dropped,
		&r.Seq, (*int64)(&r.Type), &r.Workstream, &r.ActivityID, &r.Text, (*[]byte)(&r.Details), &r.Final, &r.Time}
}

// RunMessages returns the messages of a run in order: its turn's, its reply and its notice.
// Deleted ones are left out.
func (r *Runs) RunMessages(ctx context.Context, run string) ([]messages.Message, error) {
	return storage.Read(ctx, r.db, func(tx *storage.Txn) []messages.Message {
		return messages.OfRun(tx, run)
	})
}

// FollowRun returns a channel that gets a value after each change of a run on this node, and
// soon after most changes on other nodes. The caller ends with stop.
func (r *Runs) FollowRun(run string) (changed <-chan struct{}, stop func()) {
	return r.db.Follow(storage.OfRun + run)
}

// runChanged wakes the readers of a run on this node and, if tell is set, on others.
func runChanged(db *storage.DB, run string, tell bool) { db.Changed(storage.OfRun+run, tell) }

// wake wakes the readers of things on every node.
func wake(db *storage.DB, words []string) {
	for _, of := range words {
		db.Changed(of, true)
	}
}
