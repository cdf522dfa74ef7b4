package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"parley/ingest/event"
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

// SetHistory gives the run a thread history. The thread had a number of changes before and after the messages were
// stored: if the first is another one than at the run's begin, the run's messages may have changed. stored are all
// messages of the history, if the transaction has stored them; then a transcript of a thread without other messages
// need not read them.
func (run *Run) SetHistory(h *ThreadHistory, before, after int64, stored []messages.Message) {
	run.History = h
	if run.Fresh = run.Fresh && before == run.Changed; !run.Fresh || run.Gap || run.ContextAfter > 0 || run.OpenedOn != "" || run.BaseSeq != int64(len(run.Messages)) {
		return
	}
	turn := ownTurn(run)
	turn.Gap, turn.Earlier = h.Gap, h.Earlier
	for i := range stored {
		m := &stored[i]
		if m.FileCount > 0 || m.Quotes.Quoted != nil || len(m.Quotes.Forwarded) > 0 {
			return
		}
		m.Content, m.SentAt = event.Text(m.Content), storage.Instant(storage.Millis(m.SentAt)) // as the engine stores them
		switch turn.bytes += len(m.Content); {
		case m.ExternalID == h.Root:
			turn.Root = m
		case m.Content != "":
			turn.Context = append(turn.Context, *m)
		}
	}
	if stored == nil || turn.Root != nil && turn.Root.Content == "" {
		return
	}
	slices.SortFunc(turn.Context, func(a, b messages.Message) int { return cmp.Or(b.SentAt.Compare(a.SentAt), cmp.Compare(b.Seq, a.Seq)) })
	run.first = &firstTurn{after, turn}
}

// firstTurn is a thread's first turn, whose thread history was just stored.
type firstTurn struct {
	changed int64 // the thread's number of changes
	turn    Turn
}

// firstTurn returns the run's turn, if it is the thread's first and no message of the thread has changed since its
// thread history was stored; nil if not.
func (r *Runs) firstTurn(ctx context.Context, run *Run) ([]Turn, error) {
	if run.first == nil {
		return nil, nil
	}
	first, changed := run.first, int64(0)
	run.first = nil
	_, err := r.db.Row(ctx, []any{&changed}, `SELECT changed FROM threads WHERE id = $1`, run.Thread)
	if err != nil || changed != first.changed {
		return nil, err
	}
	return []Turn{first.turn}, nil
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

// threadHistory reads the messages from before a thread's first turn.
func (t *transcript) threadHistory(h *ThreadHistory, turn *Turn) {
	turn.Gap = turn.Gap || h.Gap
	turn.Earlier += h.Earlier
	if h.First == 0 {
		return
	}
	read := messages.ReadBefore(t.Txn, t.run.Thread, h.First, h.Last)
	for i := range read {
		t.bytes += len(read[i].Content)
		if read[i].ExternalID == h.Root {
			turn.Root = &read[i]
		} else {
			turn.Context = append(turn.Context, read[i])
		}
	}
}
