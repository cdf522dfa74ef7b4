package record

import (
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// makeThread makes the thread of a first message.
var makeThread = envelopes.InsertThread(threads.Also{
	Columns: `next_seq, last_at, opened_on, ` + runs.OfFirst,
	Values:  `2, CAST($13 AS BIGINT), $14, ` + runs.OfFirstValues,
})

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
	begins, due := r.begins(row, d), int64(0)
	switch {
	case begins != "":
		due = r.now + resumeAfter.Milliseconds()
	case row.Trigger == messages.TriggerRun:
		due = r.now + min(r.Coalesce, r.CoalesceMax).Milliseconds()
		r.asks, r.out.TurnDue = row, storage.Instant(due)
	}
	f.MakeThread(makeThread, m.ExternalID, append([]any{r.now, m.OpenedOn}, runs.OfFirstArgs(begins, r.Agent, r.now, due)...)...)
	f.MakeEnvelope(event.Result{Disposition: event.Stored, Reason: d.Reason})
	messages.InsertFirst(r.Txn, messages.Insertion{
		Message: row, Workspace: r.Workspace, Now: r.now, Begins: begins, NoMemory: d.NoMemory, Known: m.Known, RunInput: string(m.RunInput),
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
	run := r.begun(row, r.Event.Message, 0)
	run.ThreadKey, run.ThreadID, run.Platform, run.Channel, run.Parent, run.OpenedOn = r.claim.Key, r.first.ThreadUUID, r.first.Platform, r.first.Channel.ID, r.first.Channel.Parent, r.Event.Message.OpenedOn
	r.out.Begun = run
}
