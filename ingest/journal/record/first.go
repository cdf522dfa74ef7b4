package record

import (
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// recordFirst records a message as the first of a new thread, by three statements that write each row once and need
// no result of one another. They change nothing if the message, its payload or its thread is known. It
// returns false, and has queued nothing, if the message needs more than these rows; see recordNew.
func (r *recordTx) recordFirst(f *envelopes.First) bool {
	m := r.Event.Message
	if !r.isPlain() || len(m.Attachments) > 0 || len(m.Mentions) > 0 || m.Quoted != nil || len(m.Forwarded) > 0 || len(r.Event.Carries) > 0 {
		return false
	}
	d := r.Decide(m, r)
	if !isPlain(d) || d.Answer != nil || d.AwaitsFiles {
		return false
	}
	row := r.newMessage(m, d)
	if row.Author == messages.ByBot && row.Trigger == messages.TriggerRun { // the thread's row gets the bot's channel
		return false
	}
	first := threads.First{MessageID: m.ExternalID, OpenedOn: m.OpenedOn, Run: r.begins(row, d), Agent: r.Agent}
	switch {
	case first.Run != "":
		first.Due = r.now + resumeAfter.Milliseconds()
	case row.Trigger == messages.TriggerRun:
		first.Due = r.now + min(r.Coalesce, r.CoalesceMax).Milliseconds()
		r.asks, r.saved.TurnDue = row, storage.Instant(first.Due)
	}
	f.MakeThread(first)
	f.MakeEnvelope(event.Result{Disposition: event.Stored, Reason: d.Reason})
	messages.InsertFirst(r.Txn, messages.Insertion{
		Message: row, Workspace: r.Workspace, Now: r.now, Begins: first.Run, NoMemory: d.NoMemory, Known: m.Known, RunInput: string(m.RunInput),
	}, messages.First{Key: r.claim.Key, Token: f.Token, Dedupe: f.Dedupe, Thread: &f.Thread, Envelope: &f.Envelope})
	r.first = f
	r.out.Message, r.out.Trigger, r.added = row, row.Trigger, 1
	r.out.Result = event.Result{Disposition: event.Stored, Reason: d.Reason}
	return true
}

// firstMade completes the outcome of recordFirst after the transaction.
func (r *recordTx) firstMade() {
	row := r.out.Message
	r.claim.Thread, row.Thread = r.first.Thread, r.first.Thread
	row.AddEnvelope(r.first.Envelope)
	if row.Run == "" {
		return
	}
	r.asks = row
	f := r.first
	r.out.Begun = r.begun(row, r.Event.Message, 0)
	r.saved.Place = threads.Place{
		Thread: f.Thread, ThreadKey: f.Key, ThreadID: f.UUID, Workspace: f.Workspace, Platform: f.Platform, Channel: f.Channel.ID, Parent: f.Channel.Parent,
		OpenedOn: r.Event.Message.OpenedOn,
	}
}
