package record

import (
	"cmp"
	"context"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Read is a message that was read from the platform as context.
type Read struct {
	Message *event.Message
	// Agent is the author of one of our messages; empty for the messages of others.
	Agent    string
	Metadata []byte // stored with the message
}

// SetThreadHistory stores the messages that were read of a thread for its run, in this order. A
// known message does not change. If the thread has a thread history already, SetThreadHistory stores
// nothing, and the run has that one. It stores no history without a message, because the thread's next run can
// read that one again.
func (s *Recorder) SetThreadHistory(ctx context.Context, claim *threads.Claim, run *runs.Run, history runs.ThreadHistory, list []Read) error {
	if len(list) == 0 && !history.Gap && history.Earlier == 0 {
		run.Fresh = false // its messages may have changed while the platform was asked
		return nil
	}
	type result struct {
		before, after int64 // the thread's number of changes
		history       *runs.ThreadHistory
		stored        []messages.Message // nil unless all of the list were
	}
	made, err := storage.Write(ctx, s.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) (made result) {
		thread := threads.Lock(tx, claim)
		if made.before = thread.Changes; thread.History != "" {
			made.history = runs.ThreadHistoryOf(tx, thread.History)
			return made
		}
		r := &recordTx{Entry: Entry{Workspace: run.Workspace, Origin: messages.FromContext}, Txn: tx, claim: claim, now: storage.Millis(s.db.Now()), out: &Result{}}
		h, stored := history, make([]messages.Message, 0, len(list))
		for _, read := range list {
			if row := r.addRead(read, &h); row != nil {
				stored = append(stored, *row)
			}
		}
		if r.moved > 0 {
			threads.AddPending(tx, claim.Thread, r.moved, r.now)
		}
		threads.SetHistory(tx, claim.Thread, tx.Pack(h, false), &made.after)
		if made.history = &h; len(stored) == len(list) && r.moved == 0 {
			made.stored = stored
		}
		return made
	})
	if err == nil {
		run.SetHistory(made.history, made.before, made.after, made.stored)
	}
	return err
}

// addRead stores a message of a thread history, and returns its row; nil if it is stored already.
func (r *recordTx) addRead(read Read, h *runs.ThreadHistory) *messages.Message {
	m := *read.Message
	if read.Agent != "" {
		if outbox.Announces(r.Txn, r.Workspace, m.ExternalID) {
			return nil // the message itself is in the thread
		}
		m.Metadata.SenderID = "agent:" + read.Agent
	}
	if r.isForgotten(&m) || !r.insert(&m, Decision{Trigger: messages.TriggerPassive, Metadata: read.Metadata}, 0) {
		return nil
	}
	row := r.out.Message
	if read.Agent != "" {
		messages.SetOurs(r.Txn, row.Row)
		row.Author = messages.ByAgent
	}
	h.First = cmp.Or(h.First, row.Seq)
	h.Last = row.Seq
	threads.GrowBefore(r.Txn, r.claim.Thread)
	return row
}
