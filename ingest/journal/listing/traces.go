package listing

import (
	"context"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Traced has what names the trace of a message; see package trace.
type Traced struct {
	UUID, ExternalID string
	Metadata         []byte
}

func (t *Traced) dest() []any { return []any{&t.UUID, &t.ExternalID, &t.Metadata} }

// FirstOf returns the first message of a run, also if it was deleted: the run is in its trace. It fails with ErrNotFound if there is none.
func (l *Listing) FirstOf(ctx context.Context, run string) (Traced, error) {
	return storage.Read(ctx, l.db, func(tx *storage.Txn) (t Traced) {
		const first = ` ORDER BY m.sent_at, m.seq LIMIT 1`
		if tx.Row(t.dest(), `SELECT m.id, m.external_id, m.metadata FROM messages m WHERE m.run = $1 AND m.trigger = 'run'
			AND NOT EXISTS (SELECT 1 FROM runs WHERE id = $1 AND state = 'interrupted')`+first, run) {
			return t
		}
		// The next run has got the messages of an interrupted run, and of one that is asked again, or they wait for it. None that waited when
		// the run began is before them.
		if !tx.Row(t.dest(), `SELECT m.id, m.external_id, m.metadata FROM runs r JOIN messages m ON m.thread = r.thread LEFT JOIN runs later ON later.id = m.run
			WHERE r.id = $1 AND r.state IN ('interrupted', 'failed', 'dropped') AND m.seq IS NOT NULL AND m.trigger = 'run' AND m.agent = r.agent AND m.created_at <= r.begun_at
			AND coalesce(later.begun_at, r.begun_at) >= r.begun_at`+first, run) {
			tx.Fail(storage.ErrNotFound)
		}
		return t
	})
}

// TasksOf returns the first messages of the workstreams that a run has launched, as far as they are recorded.
func (l *Listing) TasksOf(ctx context.Context, run string) ([]Traced, error) {
	return storage.Read(ctx, l.db, func(tx *storage.Txn) []Traced {
		return storage.Rows(tx, (*Traced).dest, `SELECT m.id, m.external_id, m.metadata FROM workstreams w JOIN threads t ON t.key = w.thread
			JOIN messages m ON m.thread = t.id AND m.seq = 1 WHERE w.run = $1 ORDER BY w.launched_at, w.id`, run)
	})
}

// WorkstreamOf returns the run that has launched the workstream of a thread, and its first message. It fails with ErrNotFound if there is
// none, or if its task is not recorded.
func (l *Listing) WorkstreamOf(ctx context.Context, thread event.ThreadKey) (run string, task Traced, err error) {
	err = l.db.One(ctx, append([]any{&run}, task.dest()...), `SELECT w.run, m.id, m.external_id, m.metadata FROM workstreams w JOIN threads t ON t.key = w.thread
		JOIN messages m ON m.thread = t.id AND m.seq = 1 WHERE w.thread = $1`, string(thread))
	return run, task, err
}
