package work

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// available is the condition that a node may claim a thread. $1 is the node, and
// $2 the time up to which leases have ended.
const available = `(owner = '' OR owner = $1 OR lease_until <= $2)`

// claim claims a thread if it is free; otherwise it returns the thread's owner. A claim
// of a thread that this node owns keeps its fence. If the previous owner ended without a
// release, the claim is counted in the thread's first pending envelope, which may be the
// cause; a postponed one is not, and of a suspect only its own worker counts. A row that
// another transaction has locked is not free.
func (s *Scheduler) claim(ctx context.Context, thread int64, now time.Time) (threads.Claim, string, error) {
	var c threads.Claim
	var owner string
	err := s.engine.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		var free bool
		c, owner = threads.Claim{Thread: thread}, ""
		found, err := tx.Row([]any{&free, &c.Fence, (*string)(&c.Key), &c.Workspace, &owner},
			`SELECT `+available+`, fence, key, workspace, owner FROM threads WHERE id = $3 FOR UPDATE SKIP LOCKED`,
			s.Node, threads.LeasesEnded(now, s.Lease), thread)
		if err != nil || !found || !free {
			c.Fence = 0
			return err
		}
		if owner != s.Node {
			c.Fence++
		}
		if err := tx.Later(nil, nil, `UPDATE threads SET owner = $1, fence = $2, lease_until = $3 WHERE id = $4`,
			s.Node, c.Fence, now.Add(s.Lease).UnixMilli(), thread); err != nil || owner == "" || owner == s.Node {
			return err
		}
		return tx.Later(nil, nil, `UPDATE envelopes SET claims = claims + 1 WHERE id = (
			SELECT id FROM envelopes WHERE thread = $1 AND state = 'pending' ORDER BY id LIMIT 1) AND not_before <= $2 AND claims < $3`,
			thread, now.UnixMilli(), int64(envelopes.SuspectClaims))
	})
	if err != nil {
		return threads.Claim{}, "", err // if the outcome is unknown, the function may still run
	}
	return c, owner, nil
}

// renew extends the leases of claims, each unless another node has claimed its thread, and
// returns the claims that hold. It skips rows that are locked: the next sweep tries them
// again. A renewal that reaches the server late shortens no lease.
func (s *Scheduler) renew(ctx context.Context, claims []*Claim, until time.Time) ([]*Claim, error) {
	return s.each(ctx, claims, `UPDATE threads SET lease_until = $3
		WHERE id = (SELECT id FROM threads WHERE id = $1 AND fence = $2 AND lease_until <= $3 FOR UPDATE SKIP LOCKED) RETURNING id`, until.UnixMilli())
}

// givesBack is the part of an UPDATE that releases a claim. The fence rises, because an
// accept at the same time may have returned this claim. A run that this claim worked on did
// not end with its process.
const givesBack = `owner = '', fence = fence + 1, run_fence = CASE WHEN run_fence = fence THEN 0 ELSE run_fence END`

// release releases claims, each unless another node has claimed its thread, or this node
// has claimed it or extended its lease since the given time.
func (s *Scheduler) release(ctx context.Context, claims []*Claim, since time.Time) error {
	_, err := s.each(ctx, claims, `UPDATE threads SET `+givesBack+` WHERE id = $1 AND fence = $2 AND lease_until < $3 RETURNING id`,
		since.Add(s.Lease).UnixMilli())
	return err
}

// leaseBatch bounds the claims that one transaction changes.
const leaseBatch = 64

// each runs a statement for each claim, in the order in which transactions lock threads,
// and returns the claims whose rows it has changed. $1 is the thread, $2 the fence.
func (s *Scheduler) each(ctx context.Context, claims []*Claim, statement string, arguments ...any) (changed []*Claim, err error) {
	slices.SortFunc(claims, func(a, b *Claim) int { return cmp.Compare(a.Thread, b.Thread) })
	for batch := range slices.Chunk(claims, leaseBatch) {
		ids := make([]int64, len(batch))
		failed := s.again(ctx, func(tx storage.Tx) error {
			clear(ids)
			for i, c := range batch {
				if err := tx.Later(nil, []any{&ids[i]}, statement, append([]any{c.Thread, c.Fence}, arguments...)...); err != nil {
					return err
				}
			}
			return nil
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
	return s.update(ctx, s.Node,
		`UPDATE threads SET `+givesBack+` WHERE owner = $1 AND intake_at IS NOT NULL`,
		`UPDATE threads SET `+givesBack+` WHERE owner = $1 AND turn_at IS NOT NULL`,
		`UPDATE threads SET `+givesBack+` WHERE owner = $1 AND id IN (SELECT thread FROM deliveries WHERE state IN ('pending', 'sending'))`)
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
	const asks = `EXISTS (SELECT 1 FROM questions WHERE run = threads.question AND state = 'open'`
	later := func(bound int64) string { return `$1 + ` + strconv.FormatInt(max(bound, slack), 10) }
	statements := []string{
		`UPDATE threads SET intake_at = $1 WHERE intake_at > ` + later(0),
		`UPDATE questions SET until_at = until_at - (asked_at - $1), asked_at = $1 WHERE state = 'open' AND asked_at > ` + later(0),
		`UPDATE threads SET turn_at = (SELECT until_at FROM questions WHERE run = threads.question) WHERE turn_at > ` + later(0) + ` AND ` + asks + ` AND until_at < threads.turn_at)`,
		`UPDATE threads SET run_not_before = $1 WHERE run_id IS NOT NULL AND turn_at IS NOT NULL AND run_not_before > ` + later(maxRateLimit),
		`UPDATE threads SET turn_at = $1 WHERE turn_at > ` + later(0) + ` AND NOT ` + asks + `)`,
		`UPDATE messages SET files_until = $1 WHERE files_until > 0 AND run IS NULL AND files_until > ` + later(maxSendTime),
		`UPDATE envelopes SET not_before = $1 WHERE state = 'pending' AND thread IS NOT NULL AND not_before > ` + later(0),
		`UPDATE workstreams SET deadline_at = deadline_at - (launched_at - $1), launched_at = $1 WHERE due_at IS NOT NULL AND launched_at > ` + later(0),
		`UPDATE workstreams SET due_at = $1 WHERE due_at > ` + later(0) + ` AND due_at > deadline_at`,
		`UPDATE deliveries SET due_at = $1, reserved_at = 0 WHERE state IN ('pending', 'sending') AND due_at > ` + later(0),
		`UPDATE deliveries SET send_by = $1 WHERE state = 'sending' AND send_by > ` + later(maxSendTime),
		`UPDATE paces SET next_at = $1, left_at = $1 WHERE next_at > ` + later(0),
		`UPDATE paces SET blocked_until = $1 WHERE blocked_until > ` + later(maxRateLimit),
		`UPDATE copies_to_check SET check_at = $1 WHERE check_at > ` + later(maxHeld),
		`UPDATE copies_to_check SET removed_until = $1 WHERE removed_until > ` + later(maxHeld),
	}
	if slack > 0 {
		statements = append(statements, `UPDATE exclusive_leases SET until = $1 WHERE until > `+later(0),
			`UPDATE threads SET lease_until = $1 WHERE intake_at IS NOT NULL AND lease_until > `+later(0),
			`UPDATE threads SET lease_until = $1 WHERE turn_at IS NOT NULL AND lease_until > `+later(0),
			`UPDATE threads SET lease_until = $1 WHERE lease_until > `+later(0)+` AND id IN (SELECT thread FROM deliveries WHERE state IN ('pending', 'sending'))`)
	} else {
		statements = append(statements, `UPDATE workstreams SET due_at = $1 WHERE due_at > $1`)
	}
	for i := range statements { // PostgreSQL would take the sum for a small integer
		statements[i] = strings.ReplaceAll(statements[i], "$1", "CAST($1 AS BIGINT)")
	}
	return s.update(ctx, s.Now().UnixMilli(), statements...)
}

// update runs statements with the same argument in a transaction that may happen twice.
func (s *Scheduler) update(ctx context.Context, argument any, statements ...string) error {
	return s.again(ctx, func(tx storage.Tx) error {
		for _, statement := range statements {
			if err := tx.Later(nil, nil, statement, argument); err != nil {
				return err
			}
		}
		return nil
	})
}

// again runs a transaction that may happen twice, until its outcome is known.
func (s *Scheduler) again(ctx context.Context, fn func(tx storage.Tx) error) error {
	for {
		err := s.engine.Write(ctx, storage.WriteOptions{}, fn)
		if !errors.Is(err, storage.ErrUnclear) || ctx.Err() != nil {
			return err
		}
	}
}
