package journal

import (
	"cmp"
	"context"
	"fmt"

	"parley/ingest/event"
	"parley/ingest/journal/places"
	"parley/ingest/journal/storage"
)

// ThreadHistory describes the messages that were read of the time before the journal knew a
// thread. Parley reads them once, and the block of the thread's first turn shows them.
// The thread's row holds the thread history, because an interrupted first turn leaves it to the
// next one.
type ThreadHistory struct {
	// Root is the external id of the thread's root.
	Root string `json:"root"`
	// Earlier is the number of left-out messages after the root.
	Earlier int `json:"earlier,omitempty"`
	// Gap means that some of the messages could not be read.
	Gap bool `json:"gap,omitempty"`
	// First and Last are the thread_seqs of the stored messages; 0 for none.
	First int64 `json:"first,omitempty"`
	Last  int64 `json:"last,omitempty"`
}

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
func (j *Journal) SetThreadHistory(ctx context.Context, claim *places.Claim, run *Run, history ThreadHistory, list []Read) error {
	made, err := storage.Write(ctx, j.db, storage.WriteOptions{Thread: claim.Key}, func(tx *storage.Txn) *ThreadHistory {
		var stored string
		if places.Lock(tx, claim, []any{&stored}, `history`); stored != "" {
			return threadHistoryOf(tx, stored)
		}
		r := &recordTx{Entry: Entry{Workspace: run.Workspace, Origin: FromContext}, Txn: tx, claim: claim, now: storage.Millis(j.db.Now()), out: &RecordResult{}}
		h := history
		for _, read := range list {
			r.addRead(read, &h)
		}
		if r.moved > 0 {
			addPending(tx, claim.Thread, r.moved, r.now)
		}
		tx.Do(`UPDATE threads SET history = $2 WHERE id = $1`, claim.Thread, tx.Pack(h, false))
		return &h
	})
	if err == nil {
		run.History = made
	}
	return err
}

// addRead stores a message of a thread history, if it is not stored yet.
func (r *recordTx) addRead(read Read, h *ThreadHistory) {
	m := *read.Message
	if read.Agent != "" {
		m.Metadata.SenderID = "agent:" + read.Agent
	}
	if !r.insert(&m, Decision{Trigger: TriggerPassive, Metadata: read.Metadata}, insertMessage+insertMessageEnd) {
		return
	}
	row := r.out.Message
	if read.Agent != "" {
		r.Do(`UPDATE messages SET author = 'agent' WHERE row = $1`, row.Row)
	}
	h.First = cmp.Or(h.First, row.Seq)
	h.Last = row.Seq
	r.Do(`UPDATE threads SET next_seq = next_seq + 1 WHERE id = $1`, r.claim.Thread)
}

// readThreadHistory reads a thread's column; nil if the thread has no thread history.
func readThreadHistory(column string) (*ThreadHistory, error) {
	if column == "" {
		return nil, nil
	}
	h := new(ThreadHistory)
	if err := storage.Unpack(column, h); err != nil {
		return nil, fmt.Errorf("thread history: %w", err)
	}
	return h, nil
}

func threadHistoryOf(tx *storage.Txn, column string) *ThreadHistory {
	h, err := readThreadHistory(column)
	tx.Fail(err)
	return h
}

// notContext is the condition that a message was not read as context for another turn.
const notContext = `origin <> 'context'`

// threadHistory reads the messages from before a thread's first turn. All messages from First to
// Last were read as context, because one transaction stores them. A deleted one, or one that
// a run has, is not passive any more.
func (t *transcript) threadHistory(h *ThreadHistory, turn *Turn) {
	turn.Gap = turn.Gap || h.Gap
	turn.Earlier += h.Earlier
	if h.First == 0 {
		return
	}
	read := lines(t.Txn, `thread = $1 AND seq BETWEEN $2 AND $3 AND trigger = 'passive'
		AND (content <> '' OR files > 0 OR quotes <> '') ORDER BY sent_at DESC, seq DESC LIMIT CAST($4 AS BIGINT)`,
		t.run.Thread, h.First, h.Last, h.Last-h.First+1)
	for i := range read {
		t.bytes += len(read[i].Content)
		if read[i].ExternalID == h.Root {
			turn.Root = &read[i]
		} else {
			turn.Context = append(turn.Context, read[i])
		}
	}
}
