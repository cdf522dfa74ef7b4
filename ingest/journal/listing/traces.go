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
func (l *Listing) FirstOf(ctx context.Context, run string) (t Traced, err error) {
	err = l.db.One(ctx, t.dest(), `SELECT id, external_id, metadata FROM messages WHERE run = $1 AND trigger = 'run' ORDER BY sent_at, seq LIMIT 1`, run)
	return t, err
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
