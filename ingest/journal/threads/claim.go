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

// Lock reads columns of a thread's row, and locks the row for the rest of the
// transaction, because a thread's intake, turn and deliveries change it concurrently. The
// transaction fails if the claim has ended.
func Lock(tx *storage.Txn, claim *Claim, dest []any, columns string) {
	if !tx.Row(dest, `SELECT `+columns+` FROM threads WHERE id = $1 AND fence = $2 FOR UPDATE`, claim.Thread, claim.Fence) {
		tx.Fail(storage.ErrFenced)
	}
}
