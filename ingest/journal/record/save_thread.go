package record

import (
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// resumeAfter is the time after which any node may resume a run that began with its
// message. Before that, the worker that has the run in memory begins it, or its process
// is dead.
const resumeAfter = time.Second

// saveThread updates the thread's row after a record: it counts the envelope as settled,
// and makes a turn due or begins a run if the message triggers one.
func (r *recordTx) saveThread() {
	c := threads.Change{Thread: r.claim.Thread, Now: r.now, Messages: r.added, Pending: r.moved - 1, OpenedOn: r.openedOn(), Deleted: r.deleted, EditedAt: r.editedAt}
	if run := r.out.Begun; run != nil {
		c.Begins = &threads.Begins{Run: run.ID, Agent: r.Agent, ResumeAt: r.now + resumeAfter.Milliseconds()}
	}
	if r.asks != nil || r.filed {
		c.Due = &threads.Due{At: r.now + r.Coalesce.Milliseconds(), Most: r.CoalesceMax.Milliseconds()}
	}
	if r.asks != nil {
		c.Due.Asks = &threads.Asks{Agent: r.Agent, Bot: r.askedByBot(), WaitsForAnswer: r.waits}
	}
	c.Save(r.Txn, &r.saved)
}

// finish completes the outcome from the thread's row.
func (r *recordTx) finish() (err error) {
	r.out.Pending, r.out.TurnDue = r.saved.Pending, r.saved.TurnDue
	if run := r.out.Begun; run != nil {
		r.out.TurnDue = storage.Instant(r.now) // a worker gets it in memory at once
		run.Place, run.ContextFrom, run.Question, run.Changed = r.saved.Place, r.saved.ContextFrom, r.saved.Question, r.saved.Changes
		run.History, err = runs.ReadThreadHistory(r.saved.History)
	}
	if r.asks != nil {
		r.out.TurnAt = r.out.TurnDue
	}
	if r.deleted > 0 && r.saved.Left == 0 {
		r.out.Withdrawn = r.thread.Run
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

// askedByBot returns the channel in which a bot requested the turn; empty for none.
func (r *recordTx) askedByBot() string {
	if r.asks.Author != messages.ByBot {
		return ""
	}
	return runs.BotChannel(r.Workspace, r.channel(r.Event.Message.Channel.ID))
}

// begun returns the run that began with a message. saveThread reads the rest.
func (r *recordTx) begun(row *messages.Message, m *event.Message, contextAfter int64) *runs.Run {
	run := &runs.Run{
		ID: row.Run, Agent: r.Agent, ContextAfter: contextAfter, BaseSeq: row.Seq,
		BegunAt: storage.Instant(r.now), Fresh: len(m.Attachments) == 0, // the rows of the attachments are unknown
	}
	run.SetMessages([]messages.Message{*row})
	return run
}
