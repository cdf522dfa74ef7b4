package record

import (
	"context"

	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Target is a message to which Parley reacts.
type Target struct {
	threads.Spot // of the message
	// PlatformID is the platform's id of the message; of a reply, that of its first post. It is empty if the platform
	// does not have the message.
	PlatformID string
}

// TargetOf returns a message of a workspace by its UUID. It fails with ErrNotFound if there is none, or if it was deleted.
func (r *Recorder) TargetOf(ctx context.Context, workspace, id string) (Target, error) {
	return storage.Read(ctx, r.db, func(tx *storage.Txn) (t Target) {
		var thread int64
		var own bool
		var external, run string
		if !tx.Row([]any{&thread, &own, &external, &run}, `SELECT thread, CASE WHEN author IN ('agent', 'system') THEN 1 ELSE 0 END, coalesce(external_id, ''), coalesce(run, '')
			FROM messages WHERE id = $1 AND workspace = $2 AND seq IS NOT NULL AND deleted_at = 0`, id, workspace) {
			tx.Fail(storage.ErrNotFound)
		}
		t.Spot = threads.SpotAt(tx, thread)
		if _, injected := event.InjectedBy(external); injected { // the platform knows its announcement alone
			own, run = true, id
		}
		if t.PlatformID = external; own {
			_, t.PlatformID, _ = outbox.StateOf(tx, run)
		}
		return t
	})
}

// AddReaction stores a reaction to a message, which is due at once, and returns its state. A repetition with the same id stores
// nothing, unless the reaction has failed: then it is tried again.
func (r *Recorder) AddReaction(ctx context.Context, t *Target, id string, p outbox.Post) (outbox.State, error) {
	return storage.Write(ctx, r.db, storage.WriteOptions{Urgent: true, Thread: t.Thread.Key}, func(tx *storage.Txn) outbox.State {
		if !tx.Row([]any{new(int64)}, `SELECT id FROM threads WHERE id = $1 FOR UPDATE`, t.Thread.Row) {
			tx.Fail(storage.ErrNotFound)
		}
		return outbox.AddReaction(tx, t.Thread.Row, id, t.Thread.Workspace, p, storage.Millis(r.db.Now()))
	})
}
