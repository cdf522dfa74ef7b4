package record

import (
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

// resumeAfter is the time after which any node may resume a run that began with its
// message. Before that, the worker that has the run in memory begins it, or its process
// is dead.
const resumeAfter = time.Second

// saveThread updates the thread's row after a record: it counts the envelope as settled,
// and makes a turn due or begins a run if the message triggers one.
func (r *recordTx) saveThread() {
	const (
		save  = `UPDATE threads SET ` + envelopes.Settles + messages.Grows + messages.Opens
		saved = ` WHERE id = $1 RETURNING pending, turn_at`
	)
	args := []any{r.claim.Thread, r.added, r.now, r.moved - 1, r.openedOn()}
	dest := []any{&r.out.Pending, &r.out.TurnDue}
	if run := r.out.Begun; run != nil {
		dest = append(dest, (*string)(&run.ThreadKey), &run.ThreadID, (*string)(&run.Platform), &run.Channel, &run.Parent, &run.OpenedOn, &r.history, &run.ContextFrom, &run.Question, &run.Changed)
		r.Later(nil, dest, save+runs.BeginWithMessage+saved+`, key, uuid, platform, channel, parent, opened_on, history, context_from, run_question, changed`,
			append(args, run.ID, r.Agent, r.now+resumeAfter.Milliseconds())...)
		return
	}
	query := save + runs.ChangeRun + saved + `, run_left`
	args = append(args, r.deleted, r.editedAt)
	if r.deleted > 0 {
		query = save + runs.ChangeRun + runs.WithdrawRun + saved + `, run_left`
	}
	if r.asks != nil || r.filed {
		args = append(args, r.now+r.Coalesce.Milliseconds(), r.CoalesceMax.Milliseconds())
		query = save + runs.ChangeRun + runs.AwaitTurn + saved + `, run_left`
	}
	if r.asks != nil {
		args = append(args, r.Agent, r.askedByBot())
		query = save + runs.ChangeRun + runs.AskForTurn(r.waits) + saved + `, run_left`
	}
	r.Later(nil, append(dest, &r.runLeft), query, args...)
}

// finish completes the outcome from the thread's row.
func (r *recordTx) finish() (err error) {
	if run := r.out.Begun; run != nil {
		r.out.TurnDue = storage.Instant(r.now) // a worker gets it in memory at once
		run.History, err = runs.ReadThreadHistory(r.history)
	}
	if r.asks != nil {
		r.out.TurnAt = r.out.TurnDue
	}
	if r.deleted > 0 && r.runLeft == 0 {
		r.out.Withdrawn = r.thread.run
	}
	return err
}

// openedOn returns the message of another thread on which the message's thread was
// opened.
func (r *recordTx) openedOn() string {
	if m := r.Event.Message; m != nil && r.added > 0 {
		return m.OpenedOn
	}
	return ""
}

// askedByBot returns the channel in which a bot requested the turn; null for none.
func (r *recordTx) askedByBot() any {
	if r.asks.Author != messages.ByBot {
		return nil
	}
	return runs.BotChannel(r.Workspace, r.channel(r.Event.Message.Channel.ID))
}

// begun returns the run that began with a message. saveThread reads the rest.
func (r *recordTx) begun(row *messages.Message, m *event.Message, contextAfter int64) *runs.Run {
	run := &runs.Run{
		ID: row.Run, Thread: row.Thread, Workspace: r.Workspace, Agent: r.Agent, ContextAfter: contextAfter, BaseSeq: row.Seq,
		BegunAt: storage.Instant(r.now), Fresh: len(m.Attachments) == 0, // the rows of the attachments are unknown
	}
	run.SetMessages([]messages.Message{*row})
	return run
}
