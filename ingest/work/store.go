package work

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/strangers"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/usage"
	"parley/ingest/journal/workstreams"
)

// available is the condition that a node may claim a thread. $1 is the node, and
// $2 the time up to which leases have ended.
const available = `(owner = '' OR owner = $1 OR lease_until <= $2)`

// claim claims a thread if it is free; otherwise it returns the thread's owner. If the previous owner ended without a
// release, the claim is counted; see envelopes.CountClaim.
func (s *Scheduler) claim(ctx context.Context, thread int64, now time.Time) (threads.Claim, string, error) {
	type result struct {
		threads.Claim
		owner string
	}
	r, err := storage.Write(ctx, s.db, storage.WriteOptions{}, func(tx *storage.Txn) (r result) {
		if r.Claim, r.owner = threads.Take(tx, s.db, thread, now); r.Fence != 0 && r.owner != "" && r.owner != s.Node {
			envelopes.CountClaim(tx, thread, now.UnixMilli())
		}
		return r
	})
	return r.Claim, r.owner, err
}

// leaseBatch bounds the claims that one transaction changes.
const leaseBatch = 64

// renew extends the leases of claims, each unless another node has claimed its thread, and
// returns the claims that hold. It skips rows that are locked: the next sweep tries them
// again.
func (s *Scheduler) renew(ctx context.Context, claims []*Claim, until time.Time) ([]*Claim, error) {
	return s.each(ctx, claims, func(tx *storage.Txn, c *Claim, thread *int64) { c.Renew(tx, until, thread) })
}

// release releases claims, each unless another node has claimed its thread, or this node
// has claimed it or extended its lease since the given time.
func (s *Scheduler) release(ctx context.Context, claims []*Claim, since time.Time) error {
	_, err := s.each(ctx, claims, func(tx *storage.Txn, c *Claim, thread *int64) { c.Release(tx, since.Add(s.Lease), thread) })
	return err
}

// each changes the row of each claim's thread, in the order in which transactions lock threads,
// and returns the claims whose rows it has changed: change sets thread for them.
func (s *Scheduler) each(ctx context.Context, claims []*Claim, change func(tx *storage.Txn, c *Claim, thread *int64)) (changed []*Claim, err error) {
	slices.SortFunc(claims, func(a, b *Claim) int { return cmp.Compare(a.Thread, b.Thread) })
	for batch := range slices.Chunk(claims, leaseBatch) {
		ids := make([]int64, len(batch))
		failed := s.again(ctx, func(tx *storage.Txn) {
			clear(ids)
			for i, c := range batch {
				change(tx, c, &ids[i])
			}
		})
		err = errors.Join(err, failed)
		for i, c := range batch {
			if failed == nil && ids[i] != 0 {
				changed = append(changed, c)
			}
		}
	}
	return changed, err
}

// releaseDue releases all threads with work that this node owns, also those whose claims
// it has forgotten.
func (s *Scheduler) releaseDue(ctx context.Context) error {
	return s.again(ctx, func(tx *storage.Txn) { threads.ReleaseNode(tx, s.Node) })
}

const (
	// maxSendTime is longer than any adapter allows for one call, in milliseconds.
	maxSendTime = 2 * 60 * 1000
	// maxRateLimit is longer than most rate limits of platforms and agents' servers, in milliseconds. They repeat a longer
	// one at the next call.
	maxRateLimit = 10 * 60 * 1000
	// maxHeld is longer than a new copy of a file is held, in milliseconds.
	maxHeld = 60 * 60 * 1000
	// adjustEvery is the interval at which nodes that share a store look for the times of a clock that led, and sharedSlack the
	// lead that they leave, in milliseconds: it is longer than the waits that the nodes make themselves.
	adjustEvery, sharedSlack = time.Minute, 10 * 60 * 1000
)

// AdjustClock corrects the due times that a clock has written which led and was set back: work becomes due now, and what
// began in the future begins now. A wait that was asked for, as by a rate limit, moves only if it is too far away. The
// schedules correct theirs themselves; see schedules.CorrectPlans.
//
// If the store is for one process, the clock does not go back while it runs, and AdjustClock must end before Serve begins, so
// that it leaves the work of this process alone. Nodes that share a store have the clock of the database, which may go back
// at any time: Run repeats AdjustClock, which then leaves times alone that are less than sharedSlack ahead.
func (s *Scheduler) AdjustClock(ctx context.Context) error {
	slack := int64(0)
	if s.Lease > 0 {
		slack = sharedSlack
	}
	now := s.Now().UnixMilli()
	late := func(bound int64) int64 { return now + max(bound, slack) }
	return s.again(ctx, func(tx *storage.Txn) {
		threads.CorrectIntakes(tx, now, late(0))
		runs.CorrectQuestions(tx, now, late(0))
		threads.CorrectTurns(tx, now, late(0), late(maxRateLimit))
		messages.CorrectFiles(tx, now, late(maxSendTime))
		envelopes.CorrectDue(tx, now, late(0))
		workstreams.CorrectTimes(tx, now, late(0))
		outbox.CorrectDue(tx, now, late(0), late(maxSendTime), late(maxRateLimit))
		files.CorrectChecks(tx, now, late(maxHeld))
		strangers.CorrectTimes(tx, now, late(0))
		usage.CorrectProgress(tx, now, late(0))
		if slack > 0 {
			threads.CorrectLeases(tx, now, late(0))
		} else {
			workstreams.HastenAll(tx, now)
		}
	})
}

// again runs a transaction that may happen twice, until its outcome is known.
func (s *Scheduler) again(ctx context.Context, fn func(tx *storage.Txn)) error {
	for {
		err := s.db.Change(ctx, "", fn)
		if !errors.Is(err, storage.ErrUnclear) || ctx.Err() != nil {
			return err
		}
	}
}
