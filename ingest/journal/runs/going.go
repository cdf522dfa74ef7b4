package runs

import (
	"context"
	"slices"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

// GoingRun returns a run that has not ended, with the place of its thread, its agent and its messages. It fails with ErrNotFound if
// there is none.
func (r *Runs) GoingRun(ctx context.Context, id string) (*Run, error) {
	return storage.Read(ctx, r.db, func(tx *storage.Txn) *Run {
		run := &Run{ID: id}
		if !tx.Row([]any{&run.Thread, (*string)(&run.ThreadKey), &run.ThreadID, &run.Workspace, (*string)(&run.Platform), &run.Channel, &run.Parent, &run.Agent, &run.OpenedOn, &run.ContextFrom},
			`SELECT id, key, uuid, workspace, platform, channel, parent, agent, opened_on, run_context_from FROM threads WHERE run_id = $1`, id) {
			tx.Fail(storage.ErrNotFound)
		}
		run.Messages = slices.DeleteFunc(messages.Causes(tx, id), func(m messages.Message) bool { return !m.DeletedAt.IsZero() })
		return run
	})
}
