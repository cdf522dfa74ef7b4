package record

import (
	"cmp"
	"context"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/places"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
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
// nothing, and the run has that one.
func (s *Recorder) SetThreadHistory(ctx context.Context, claim *places.Claim, run *runs.Run, history runs.ThreadHistory, list []Read) error {
	var changed int64 // of the thread: the run's messages may have changed while the history was read
	made, err := storage.Write(ctx, s.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) *runs.ThreadHistory {
		var stored string
		if places.Lock(tx, claim, []any{&stored, &changed}, `history, changed`); stored != "" {
			return runs.ThreadHistoryOf(tx, stored)
		}
		r := &recordTx{Entry: Entry{Workspace: run.Workspace, Origin: messages.FromContext}, Txn: tx, claim: claim, now: storage.Millis(s.db.Now()), out: &Result{}}
		h := history
		for _, read := range list {
			r.addRead(read, &h)
		}
		if r.moved > 0 {
			envelopes.AddPending(tx, claim.Thread, r.moved, r.now)
		}
		runs.SetHistory(tx, claim.Thread, h)
		return &h
	})
	if err == nil {
		run.History, run.Fresh = made, run.Fresh && changed == run.Changed
	}
	return err
}

// addRead stores a message of a thread history, if it is not stored yet.
func (r *recordTx) addRead(read Read, h *runs.ThreadHistory) {
	m := *read.Message
	if read.Agent != "" {
		m.Metadata.SenderID = "agent:" + read.Agent
	}
	if !r.insert(&m, Decision{Trigger: messages.TriggerPassive, Metadata: read.Metadata}, 0) {
		return
	}
	row := r.out.Message
	if read.Agent != "" {
		messages.SetOurs(r.Txn, row.Row)
	}
	h.First = cmp.Or(h.First, row.Seq)
	h.Last = row.Seq
	messages.GrowBefore(r.Txn, r.claim.Thread)
}
