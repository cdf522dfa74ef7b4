package threads

import (
	"math"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Claim is this node's right to work on a thread; package work makes claims. Every
// write of the thread's work carries the fence. If another node claims the thread
// the fence rises, and the write fails with ErrFenced.
type Claim struct {
	Thread int64
	Fence  int64
	// Key and Workspace are the thread's. The key may be empty.
	Key       event.ThreadKey
	Workspace string
}

// LeasesEnded returns the greatest lease_until of the leases of other nodes that have ended
// at a time. A store for one process, whose claims have the lease 0, has only ended leases,
// even if the clock went back since.
func LeasesEnded(at time.Time, lease time.Duration) int64 {
	if lease == 0 {
		return math.MaxInt64
	}
	return storage.Millis(at)
}

// State is what work on a thread reads of its row.
type State struct {
	Channel           string
	NextSeq, BegunSeq int64
	Run               string // the unfinished run; empty for none
	Waiting           bool   // messages wait for a turn
	Mode              ThreadMode
	Question          string // the run whose question the next run gets; empty for none
	History           string // see SetHistory
	Changes           int64  // the thread's number of changes
}

// Lock reads a thread's row, and locks it for the rest of the transaction, because a thread's intake, turn and
// deliveries change it concurrently. The transaction fails if the claim has ended.
func Lock(tx *storage.Txn, claim *Claim) (s State) {
	if !tx.Row([]any{&s.Channel, &s.NextSeq, &s.BegunSeq, &s.Run, &s.Waiting, (*string)(&s.Mode), &s.Question, &s.History, &s.Changes},
		`SELECT channel, next_seq, begun_seq, run_id, turn_since IS NOT NULL, mode, question, history, changed
		FROM threads WHERE id = $1 AND fence = $2 FOR UPDATE`, claim.Thread, claim.Fence) {
		tx.Fail(storage.ErrFenced)
	}
	return s
}

// ReleaseAll ends the claims of a copied store. The fences rise, so that no former owner can write to the copy.
func ReleaseAll(tx storage.Tx) error {
	_, err := tx.Exec(`UPDATE threads SET owner = '', lease_until = 0, fence = fence + 1 WHERE owner <> ''`)
	return err
}

// Calm ends the claims, the turns and the runs of a copied store, in which nothing waits.
func Calm(tx storage.Tx) error {
	_, err := tx.Exec(`UPDATE threads SET owner = '', lease_until = 0, pending = 0, intake_at = NULL, turn_at = NULL, turn_since = NULL, bot_channel = NULL,
		run_id = NULL, run_bot_channel = NULL, run_answer = NULL, question = ''`)
	return err
}
