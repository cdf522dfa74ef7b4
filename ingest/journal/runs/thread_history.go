package runs

import (
	"fmt"

	"parley/ingest/journal/messages"
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

// SetHistory stores the thread history of a thread.
func SetHistory(tx *storage.Txn, thread int64, h ThreadHistory) {
	tx.Do(`UPDATE threads SET history = $2 WHERE id = $1`, thread, tx.Pack(h, false))
}

// ReadThreadHistory reads a thread's column; nil if the thread has no thread history.
func ReadThreadHistory(column string) (*ThreadHistory, error) {
	if column == "" {
		return nil, nil
	}
	h := new(ThreadHistory)
	if err := storage.Unpack(column, h); err != nil {
		return nil, fmt.Errorf("thread history: %w", err)
	}
	return h, nil
}

// ThreadHistoryOf is ReadThreadHistory inside a transaction.
func ThreadHistoryOf(tx *storage.Txn, column string) *ThreadHistory {
	h, err := ReadThreadHistory(column)
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
	read := messages.Lines(t.Txn, `thread = $1 AND seq BETWEEN $2 AND $3 AND trigger = 'passive'
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
