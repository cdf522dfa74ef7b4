package runs

import (
	"context"
	"slices"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

// PastInput has the input of a run that has begun: the input that its agent got, if it is kept, and otherwise its
// turns as they are now.
type PastInput struct {
	Run   *Run
	Kept  string // the agent's input, a JSON list of messages; empty if it is not kept
	Turns []Turn // by time, the run's last; nil if the input is kept
}

// PastInput returns what a run of a thread is made from, by the thread's UUID; an empty run is the thread's newest.
// The window bounds the turns. It changes nothing and fails with ErrNotFound if the thread has no such run.
func (r *Runs) PastInput(ctx context.Context, thread, named string, window func(*Run) Window) (PastInput, error) {
	var past PastInput
	run := &Run{ThreadID: thread}
	var history string
	which, args := `ORDER BY m.sent_at DESC, m.seq DESC LIMIT 1`, []any{thread}
	if named != "" {
		which, args = `AND m.run = $2`, append(args, named)
	}
	err := r.db.One(ctx, []any{&run.Thread, (*string)(&run.ThreadKey), &run.Workspace, (*string)(&run.Platform), &run.Channel, &run.Parent, &run.OpenedOn, &history,
		&run.ID, &run.ContextAfter, &run.BaseSeq, &run.Gap, &run.ContextFrom, &run.Agent, &past.Kept},
		`SELECT t.id, t.key, t.workspace, t.platform, t.channel, t.parent, t.opened_on, t.history, m.run, m.context_after, m.base_seq, m.gap,
			CASE WHEN t.run_id = m.run THEN t.run_context_from WHEN t.context_from <= m.base_seq THEN t.context_from ELSE 0 END,
			coalesce((SELECT agent FROM runs WHERE id = m.run), t.agent), coalesce((SELECT input FROM run_inputs WHERE run = m.run ORDER BY n DESC LIMIT 1), '')
		FROM threads t JOIN messages m ON m.thread = t.id AND m.context_after IS NOT NULL
		WHERE t.uuid = $1 `+which, args...)
	if past.Run = run; err != nil || past.Kept != "" {
		return past, err
	}
	past.Turns, err = storage.Read(ctx, r.db, func(tx *storage.Txn) []Turn {
		run.History = ThreadHistoryOf(tx, history)
		run.SetMessages(messages.Lines(tx, `m.run = $1 AND m.deleted_at = 0 AND m.author NOT IN ('agent', 'system') ORDER BY m.sent_at, m.seq`, run.ID))
		run.Fresh = true
		t := transcript{Txn: tx, run: run, window: window(run), past: named != ""}
		return t.read()
	})
	slices.Reverse(past.Turns)
	return past, err
}
