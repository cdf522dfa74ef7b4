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

// Take claims a thread for this node at a time, if it is free; otherwise the claim has no fence, and owner is the thread's owner. A claim
// of a thread that this node owns keeps its fence. A row that another transaction has locked is not free. before is the
// owner that the thread had.
func Take(tx *storage.Txn, db *storage.DB, thread int64, now time.Time) (c Claim, before string) {
	var free bool
	c.Thread = thread
	if !tx.Row([]any{&free, &c.Fence, (*string)(&c.Key), &c.Workspace, &before},
		`SELECT owner = '' OR owner = $1 OR lease_until <= $2, fence, key, workspace, owner FROM threads WHERE id = $3 FOR UPDATE SKIP LOCKED`,
		db.Node, LeasesEnded(now, db.Lease), thread) || !free {
		c.Fence = 0
		return c, before
	}
	if before != db.Node {
		c.Fence++
	}
	tx.Do(`UPDATE threads SET owner = $1, fence = $2, lease_until = $3 WHERE id = $4`, db.Node, c.Fence, now.Add(db.Lease).UnixMilli(), thread)
	return c, before
}

// Renew extends the lease of the claim, unless another node has claimed the thread, or the row is locked. It sets thread to the row of
// the thread if it did, now or later; see storage.Tx. A renewal that reaches the server late shortens no lease.
func (c *Claim) Renew(tx *storage.Txn, until time.Time, thread *int64) {
	tx.Later(nil, []any{thread}, `UPDATE threads SET lease_until = $3
		WHERE id = (SELECT id FROM threads WHERE id = $1 AND fence = $2 AND lease_until <= $3 FOR UPDATE SKIP LOCKED) RETURNING id`, c.Thread, c.Fence, until.UnixMilli())
}

// release ends a claim. The fence rises, because an accept at the same time may have returned this claim. A run that
// this claim worked on did not end with its process.
const release = `UPDATE threads SET owner = '', fence = fence + 1, run_fence = CASE WHEN run_fence = fence THEN 0 ELSE run_fence END WHERE `

// Release ends the claim, unless another node has claimed the thread, or its lease ends at a time or later. It sets thread as Renew
// does.
func (c *Claim) Release(tx *storage.Txn, before time.Time, thread *int64) {
	tx.Later(nil, []any{thread}, release+`id = $1 AND fence = $2 AND lease_until < $3 RETURNING id`, c.Thread, c.Fence, before.UnixMilli())
}

// ReleaseNode ends a node's claims of threads that have work.
func ReleaseNode(tx *storage.Txn, node string) {
	for _, works := range hasWork {
		tx.Do(release+`owner = $1 AND `+works, node)
	}
}

// hasWork are the conditions that a thread has work, by its kind.
var hasWork = []string{`intake_at IS NOT NULL`, `turn_at IS NOT NULL`, `id IN (SELECT thread FROM deliveries WHERE state IN ('pending', 'sending'))`}

// Held returns the claim with which its owner works on a thread, and locks the thread's row: a change that comes from no work on the
// thread takes it for one transaction, and its owner goes on. It returns false if there is no such thread.
func Held(tx *storage.Txn, thread int64) (c Claim, found bool) {
	c.Thread = thread
	return c, tx.Row([]any{&c.Fence, (*string)(&c.Key), &c.Workspace}, `SELECT fence, key, workspace FROM threads WHERE id = $1 FOR UPDATE`, thread)
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
