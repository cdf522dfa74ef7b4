package work_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/outbox"
	"parley/ingest/journal/threads"
	"parley/ingest/work"
)

const lease = time.Minute

func aThreadIsClaimedByOneNode(t *testing.T, s *store) {
	begun := time.UnixMilli(1_700_000_000_000)
	s.at(begun)
	one, two := newNode(t, s, "one", lease), newNode(t, s, "two", lease)
	thread := one.accept(1).Thread
	first, _ := one.claimNow(thread)
	if again, _ := one.claimNow(thread); again != first || first == 0 {
		t.Errorf("fence %d, and %d for the owner", first, again)
	}
	s.at(begun.Add(lease - time.Millisecond))
	if fence, owner := two.claimNow(thread); fence != 0 || owner != "one" {
		t.Errorf("claimed before the lease has ended: fence %d, owner %q", fence, owner)
	}
	s.at(begun.Add(lease))
	if fence, _ := two.claimNow(thread); fence != first+1 {
		t.Errorf("fence %d after the lease, want %d", fence, first+1)
	}
	if fence, _ := one.claimNow(4711); fence != 0 {
		t.Errorf("fence %d of no thread", fence)
	}
	// A store for one process: the other processes have ended, even if their leases end later.
	s.at(begun.Add(-time.Hour))
	if fence, _ := newNode(t, s, "only", 0).claimNow(thread); fence != first+2 {
		t.Errorf("fence %d for the only process, want %d", fence, first+2)
	}
}

// claimsThatEndedWithTheirProcessAreCounted proves that they are counted in the thread's
// first envelope, and no other claims are.
func claimsThatEndedWithTheirProcessAreCounted(t *testing.T, s *store) {
	n := newNode(t, s, "process 0", 0)
	thread := n.accept(1).Thread
	n.accept(1)
	counts := func() [2]int64 {
		return [2]int64{n.number(`SELECT claims FROM envelopes ORDER BY id LIMIT 1`), n.number(`SELECT CAST(sum(claims) AS BIGINT) FROM envelopes`)}
	}
	for i, want := range []int64{0, 1, 2, 3, 3} { // the first claim has no predecessor; a suspect's worker counts itself
		n = newNode(t, s, fmt.Sprint("process ", i+1), 0)
		n.claimNow(thread)
		n.claimNow(thread)
		if got := counts(); got != [2]int64{want, want} {
			t.Errorf("counts %v, want %d", got, want)
		}
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	newNode(t, s, "after a stop", 0).claimNow(thread)
	if got := counts(); got != [2]int64{3, 3} {
		t.Errorf("counts %v after a stop", got)
	}
	n.exec(`UPDATE envelopes SET not_before = $1`, s.clock().Add(time.Hour).UnixMilli())
	newNode(t, s, "after an end while it waits", 0).claimNow(thread)
	if got := counts(); got != [2]int64{3, 3} {
		t.Errorf("counts %v of a postponed envelope", got)
	}
}

// TestPostponedWorkHasNoOwner: the end of the process proves nothing about it.
func TestPostponedWorkHasNoOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", 0)
		n.serves(intake, func(_ context.Context, c *work.Claim) error {
			n.exec(`UPDATE threads SET intake_at = $1`, time.Now().Add(time.Minute).UnixMilli())
			advance(time.Millisecond) // a claim of this millisecond may be a new one
			return work.ErrWaits
		})
		n.accept(1)
		advance(2 * time.Second)
		if owned := n.number(`SELECT count(*) FROM threads WHERE owner <> ''`); owned != 0 {
			t.Error("a thread with postponed work has an owner")
		}
	})
}

// TestWorkBeginsWithAFreshLease: no sweep renews a claim that ends soon.
func TestWorkBeginsWithAFreshLease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", lease)
		r := n.accepts(1, true)
		n.Accepted(r, "payload")
		advance(lease - time.Second)
		left := make(chan time.Duration, 1)
		n.serves(intake, func(_ context.Context, c *work.Claim) error {
			if c.Fence != r.Fence || work.Payload.Get(c) != "payload" {
				t.Error("the claim is not the one of the accept")
			}
			left <- time.Until(time.UnixMilli(n.number(`SELECT lease_until FROM threads`)))
			return n.settle(c)
		})
		n.Wake(work.Intake, "", r.Thread)
		if got := <-left; got < lease-time.Second {
			t.Errorf("the lease ends in %v", got)
		}
	})
}

// TestWorkThatWaitsKeepsAUsedClaim: the thread's run goes on with it.
func TestWorkThatWaitsKeepsAUsedClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		one, two := newNode(t, s, "one", lease), newNode(t, s, "two", lease)
		one.starts(one.Scheduler.Run)
		going, runs := make(chan bool), work.Slot[bool]{Key: "runs"}
		one.serves(turns, func(ctx context.Context, c *work.Claim) error {
			runs.Put(c, true)
			going <- true
			<-ctx.Done()
			return nil
		})
		results := []error{work.ErrWaits, work.ErrSuspect, nil}
		one.serves(intake, func(_ context.Context, c *work.Claim) error {
			if !runs.Get(c) {
				return work.ErrWaits // the run has not begun, or the claim has lost it
			}
			err := results[0] // the suspect's envelope comes at least twice
			if err != work.ErrSuspect || c.Serial() {
				results = results[1:]
			}
			if err == nil {
				return one.settle(c)
			}
			return err
		})
		advance(11 * time.Second) // a young process runs no suspects
		r := one.accepts(1, true)
		one.Wake(work.Turns, "helper", r.Thread)
		<-going
		for range 10 { // the first may come before the run's payload
			if len(results) > 0 {
				one.Accepted(r, nil)
				synctest.Wait()
			}
		}
		if len(results) > 0 {
			t.Errorf("the intake did not get to %v", results)
		}
		advance(2 * lease)
		if fence, _ := two.claimNow(r.Thread); fence != 0 {
			t.Error("another node has claimed the thread of a run that goes on")
		}
	})
}

// TestAcceptLeavesAThreadOfADeadOwner proves that the scheduler makes and counts the next
// claim.
func TestAcceptLeavesAThreadOfADeadOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		newNode(t, s, "dies", 0).accepts(1, true)
		n := newNode(t, s, "next", 0)
		r := n.accepts(1, true)
		if r.Fence != 0 {
			t.Error("Accept claimed the thread")
		}
		claims := int64(-1)
		n.serves(intake, func(_ context.Context, c *work.Claim) error {
			claims = n.number(`SELECT CAST(sum(claims) AS BIGINT) FROM envelopes`)
			return n.settle(c)
		})
		n.Accepted(r, nil)
		synctest.Wait()
		if claims != 1 {
			t.Errorf("%d claims are counted", claims)
		}
	})
}

func claimsAreReleasedAtClose(t *testing.T, s *store) {
	one, two := newNode(t, s, "one", time.Hour), newNode(t, s, "two", time.Hour)
	worked := make(chan int64, 1)
	stop := one.serves(intake, func(_ context.Context, c *work.Claim) error {
		err := one.settle(c)
		worked <- c.Thread
		return err
	})
	one.Accepted(one.accepts(1, true), nil)
	thread := <-worked
	stop()
	if fence, _ := two.claimNow(thread); fence != 0 {
		t.Fatal("the other node claimed a claimed thread")
	}
	if err := one.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if fence, _ := two.claimNow(thread); fence == 0 {
		t.Fatal("the thread was not released")
	}
	if err := one.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, owner := one.claimNow(thread); owner != "two" {
		t.Errorf("owner %q after the first node closed again", owner)
	}
}

func aLeaseIsRenewedAsLongAsAWorkerNeedsIt(t *testing.T, s *store) {
	now := time.UnixMilli(1_700_000_000_000)
	s.at(now)
	one, two := newNode(t, s, "one", lease), newNode(t, s, "two", lease)
	entered, leave := make(chan struct{}, 10), make(chan struct{})
	stop := one.serves(intake, func(context.Context, *work.Claim) error {
		entered <- struct{}{}
		<-leave
		return nil
	})
	var threads []int64
	for i := range 3 {
		r := one.accepts(i, true)
		threads = append(threads, r.Thread)
		one.Accepted(r, nil)
		<-entered
	}
	s.writes.Store(0)
	for range 3 {
		now = now.Add(lease - 10*time.Second)
		s.at(now)
		one.Sweep(t.Context())
		for _, thread := range threads {
			if fence, _ := two.claimNow(thread); fence != 0 {
				t.Fatal("the other node claimed a thread in work")
			}
		}
	}
	if writes := s.writes.Load() - 9; writes != 3 { // except the claims
		t.Errorf("%d transactions renewed 3 leases 3 times", writes)
	}
	close(leave)
	stop()
	s.at(now.Add(lease))
	one.Sweep(t.Context())
	if n := one.Claims(); n != 0 {
		t.Errorf("%d claims are kept", n)
	}
	if fence, _ := two.claimNow(threads[0]); fence == 0 {
		t.Error("the thread is not free a lease after its last worker")
	}
}

func aKeptClaimOutlastsItsWorker(t *testing.T, s *store) {
	now := time.UnixMilli(1_700_000_000_000)
	s.at(now)
	one, two := newNode(t, s, "one", lease), newNode(t, s, "two", lease)
	worked, leaves := make(chan bool, 10), make(chan func(), 10) // a look may find the thread once more
	stop := one.serves(intake, func(_ context.Context, c *work.Claim) error {
		leaves <- one.Keep(c)
		err := one.settle(c)
		worked <- true
		return errors.Join(err, work.ErrWaits)
	})
	r := one.accepts(1, true)
	one.Accepted(r, nil)
	<-worked
	stop()
	for range 3 {
		now = now.Add(lease - 10*time.Second)
		s.at(now)
		one.Sweep(t.Context())
		if fence, owner := two.claimNow(r.Thread); fence != 0 || owner != "one" {
			t.Fatalf("the other node claimed a kept thread: fence %d, owner %q", fence, owner)
		}
	}
	for len(leaves) > 0 {
		(<-leaves)()
	}
	s.at(now.Add(lease))
	one.Sweep(t.Context())
	if fence, _ := two.claimNow(r.Thread); fence == 0 {
		t.Error("the thread is not free a lease after it was left")
	}
}

// TestAHangingRenewalIsTriedAgain proves that a lease does not end while a renewal hangs, and
// that this renewal does not shorten the lease when it happens at last.
func TestAHangingRenewalIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		const lease = 8 * time.Second
		one, two := newNode(t, s, "one", lease), newNode(t, s, "two", lease)
		one.starts(one.Scheduler.Run)
		one.serves(intake, func(ctx context.Context, _ *work.Claim) error {
			<-ctx.Done()
			return nil
		})
		synctest.Wait()
		r := one.accepts(1, true)
		one.Accepted(r, nil)
		s.hangs.Store(true)
		advance(lease)
		if fence, _ := two.claimNow(r.Thread); fence != 0 {
			t.Fatal("the other node claimed a thread in work")
		}
		const until = `SELECT lease_until FROM threads`
		before := one.number(until)
		one.check(s.late())
		if after := one.number(until); after < before {
			t.Errorf("the lease is %d ms shorter", before-after)
		}
	})
}

// aFollowUpExtendsTheLease proves that the node that answered before keeps its claim.
func aFollowUpExtendsTheLease(t *testing.T, s *store) {
	now := time.UnixMilli(1_700_000_000_000)
	s.at(now)
	one, two := newNode(t, s, "one", lease), newNode(t, s, "two", lease)
	worked := make(chan int64, 10) // a look may find the thread once more
	stop := one.serves(intake, func(_ context.Context, c *work.Claim) error {
		err := one.settle(c)
		worked <- c.Fence
		return err
	})
	first := one.accepts(1, true)
	one.Accepted(first, nil)
	<-worked
	s.at(now.Add(lease + time.Second)) // after the end of the lease
	one.Accepted(one.accepts(1, true), nil)
	if fence := <-worked; fence != first.Fence {
		t.Errorf("fence %d, then %d", first.Fence, fence)
	}
	stop()
	if fence, owner := two.claimNow(first.Thread); fence != 0 || owner != "one" {
		t.Errorf("the other node claimed the thread: fence %d, owner %q", fence, owner)
	}
}

func workOfUnknownWorkspacesIsLeftToOtherNodes(t *testing.T, s *store) {
	n := newNode(t, s, "one", 0)
	n.Serves([]string{"home", "other"})
	n.accept(1)
	ours := n.accept(2).Thread
	n.exec(`UPDATE threads SET workspace = 'home' WHERE id = $1`, ours)
	worked := make(chan int64, 10)
	stop := n.serves(intake, func(_ context.Context, c *work.Claim) error {
		worked <- c.Thread
		return n.settle(c)
	})
	if got := <-worked; got != ours {
		t.Errorf("thread %d, want %d", got, ours)
	}
	stop()
	if len(worked) > 0 {
		t.Errorf("thread %d too", <-worked)
	}
}

// TestARemovedWorkspaceLeavesItsThreads: a node that has a thread of a workspace which it no
// longer serves gives the thread to another node.
func TestARemovedWorkspaceLeavesItsThreads(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		one, two := newNode(t, s, "one", lease), newNode(t, s, "two", lease)
		r := one.accepts(1, true)
		one.Serves([]string{"home"})
		one.serves(intake, func(context.Context, *work.Claim) error {
			t.Error("the node works on a thread of a removed workspace")
			return nil
		})
		advance(time.Millisecond) // a claim of this millisecond may be a new one
		one.Accepted(r, nil)
		synctest.Wait()
		if fence, owner := two.claimNow(r.Thread); fence == 0 {
			t.Errorf("%s still has the thread", owner)
		}
	})
}

func turnsOfFullWorkspacesWaitInTheStore(t *testing.T, s *store) {
	n := newNode(t, s, "one", 0)
	first, second, ours := n.accept(1).Thread, n.accept(2).Thread, n.accept(3).Thread
	n.exec(`UPDATE threads SET workspace = 'home' WHERE id = $1`, ours)
	n.exec(`UPDATE threads SET agent = 'helper', turn_at = id, pending = 0, intake_at = NULL`)
	bounded := turns
	bounded.Slots, bounded.Bound = 2, func(string) int { return 1 }
	worked, ends := make(chan int64, 10), make(chan struct{})
	stop := n.serves(bounded, func(_ context.Context, c *work.Claim) error {
		worked <- c.Thread
		if c.Workspace != "home" {
			<-ends
		}
		n.exec(`UPDATE threads SET turn_at = NULL WHERE id = $1`, c.Thread)
		return nil
	})
	begun := []int64{<-worked, <-worked}
	if !slices.Contains(begun, ours) {
		t.Errorf("threads %d, one of them must be %d", begun, ours)
	}
	for !n.Room(work.Turns, "helper", "home") { // until the worker has left the thread
		runtime.Gosched()
	}
	if n.Room(work.Turns, "helper", "acme") {
		t.Error("the full workspace has room")
	}
	if len(worked) > 0 {
		t.Errorf("thread %d too", <-worked)
	}
	close(ends)
	if begun = append(begun, <-worked); !slices.Contains(begun, first) || !slices.Contains(begun, second) {
		t.Errorf("threads %d, want %d and %d too", begun, first, second)
	}
	stop()
}

// TestAPayloadEndsWithItsClaim covers a thread that another node had meanwhile.
func TestAPayloadEndsWithItsClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		one, two := newNode(t, s, "one", lease), newNode(t, s, "two", lease)
		r := one.accepts(1, true)
		payloads := make(chan any, 10)
		one.Accepted(r, "payload") // before a look can find the thread
		stop := one.serves(intake, func(_ context.Context, c *work.Claim) error {
			payloads <- work.Payload.Get(c)
			return nil
		})
		if got := <-payloads; got != "payload" {
			t.Errorf("payload %v", got)
		}
		stop()
		for len(payloads) > 0 { // a look at the store may have found the thread once more
			<-payloads
		}
		advance(lease)
		two.claimNow(r.Thread)
		advance(lease)
		one.serves(intake, func(_ context.Context, c *work.Claim) error {
			payloads <- work.Payload.Get(c)
			return one.settle(c)
		})
		if got := <-payloads; got != nil {
			t.Errorf("payload %v under a new claim", got)
		}
	})
}

func TestALostClaimIsDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", lease)
		thread := n.accept(1).Thread
		fences := make(chan int64, 10)
		n.serves(intake, func(_ context.Context, c *work.Claim) error {
			work.Slot[bool]{Key: "payload"}.Put(c, true)
			fences <- c.Fence
			if len(fences) == 1 {
				n.exec(`UPDATE threads SET owner = '', fence = fence + 1 WHERE id = $1`, thread)
			}
			return n.settle(c)
		})
		advance(2 * time.Second)
		if before, after := <-fences, <-fences; after != before+2 {
			t.Errorf("fence %d, then %d", before, after)
		}
	})
}

func TestUnusedClaimsAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "only", 0)
		n.starts(n.Scheduler.Run)
		n.serves(intake, func(_ context.Context, c *work.Claim) error { return n.settle(c) })
		for i := range 10 {
			n.Accepted(n.accepts(i, true), "payload")
		}
		synctest.Wait()
		if got := n.Claims(); got != 10 {
			t.Errorf("%d claims", got)
		}
		advance(4 * time.Second)
		if got := n.Claims(); got != 0 {
			t.Errorf("%d claims are kept", got)
		}
	})
}

// TestAQueuedThreadKeepsItsPayload although it waits longer for a worker than an unused claim is kept.
func TestAQueuedThreadKeepsItsPayload(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "only", 0)
		n.starts(n.Scheduler.Run)
		payloads := make(chan any, 2)
		n.serves(work.Queue{Kind: work.Intake, Slots: 1}, func(_ context.Context, c *work.Claim) error {
			payloads <- work.Payload.Get(c)
			advance(5 * time.Second)
			return n.settle(c)
		})
		synctest.Wait()
		n.Accepted(n.accepts(1, true), "first")
		n.Accepted(n.accepts(2, true), "second")
		if one, two := <-payloads, <-payloads; one != "first" || two != "second" {
			t.Errorf("payloads %v and %v", one, two)
		}
	})
}

// TestAClockThatWentBackOverARestart proves that no work waits for the clock.
func TestAClockThatWentBackOverARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		dies := newNode(t, s, "dies", 0)
		r := dies.accepts(1, true)
		claim := &threads.Claim{Thread: r.Thread, Fence: r.Fence}
		if err := dies.journal.Envelopes.Postpone(t.Context(), claim, r.ID, time.Now().Add(time.Second), errors.New("a fault")); err != nil {
			t.Fatal(err)
		}
		s.at(time.Now().Add(-time.Hour))
		n := newNode(t, s, "next", 0)
		if err := n.AdjustClock(t.Context()); err != nil {
			t.Fatal(err)
		}
		n.serves(intake, func(_ context.Context, c *work.Claim) error { return n.settle(c) })
		synctest.Wait()
		if left := n.number(`SELECT count(*) FROM envelopes WHERE state = 'pending'`); left != 0 {
			t.Error("the envelope waits until the clock has caught up")
		}
	})
}

// TestATurnWaitsForAQuestionOverARestart: only the question's time or its answer makes it due.
func TestATurnWaitsForAQuestionOverARestart(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "only", 0)
		thread, until := n.accept(1).Thread, time.Now().Add(time.Hour).UnixMilli()
		n.exec(`INSERT INTO questions (run, thread, agent, state, body, asked_at, until_at) VALUES ('run', $1, 'helper', 'open', '', 1, $2)`, thread, until)
		for state, want := range map[string]int64{"open": until, "answered": time.Now().UnixMilli()} {
			n.exec(`UPDATE questions SET state = $1`, state)
			n.exec(`UPDATE threads SET question = 'run', turn_since = 1, turn_at = $1`, until)
			n.check(n.AdjustClock(t.Context()))
			if at := n.number(`SELECT turn_at FROM threads`); at != want {
				t.Errorf("%s: due at %d, want %d", state, at, want)
			}
		}
	})
}

// TestAClockThatWentBackLeavesNoPostWaiting proves that no post waits for the clock, neither for
// its place in its channel's pace nor for the end of a rate limit.
func TestAClockThatWentBackLeavesNoPostWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		before := newNode(t, s, "before", 0)
		begin := func(n *node, thread int64) outbox.Slot {
			t.Helper()
			fence, _ := n.claimNow(thread)
			d, err := n.journal.Outbox.NextDelivery(t.Context(), thread)
			n.check(err)
			slot, err := n.journal.Outbox.BeginSend(t.Context(), &threads.Claim{Thread: thread, Fence: fence}, d, outbox.Send{Timeout: time.Second, Every: 10 * time.Second})
			n.check(err)
			return slot
		}
		var threads []int64
		for i, channel := range []string{"paced", "paced", "limited"} {
			thread := before.accept(i).Thread
			before.exec(`INSERT INTO deliveries (thread, run, part, key, workspace, channel, place, payload, created_at, kind, state, due_at)
				VALUES ($1, 'run', 0, $2, 'acme', $3, '', '', 0, 'post', 'pending', 0)`, thread, fmt.Sprint(thread), channel)
			threads = append(threads, thread)
		}
		before.check(before.journal.Outbox.HoldUp(t.Context(), "acme", "limited", time.Now().Add(time.Minute)))
		for _, thread := range threads {
			begin(before, thread)
		}
		s.at(time.Now().Add(-24 * time.Hour))
		after := newNode(t, s, "after", 0)
		after.check(after.AdjustClock(t.Context()))
		for _, thread := range threads[1:] {
			if slot := begin(after, thread); slot.Wait.Sub(s.clock()) > time.Hour {
				t.Errorf("the post of thread %d waits %v", thread, slot.Wait.Sub(s.clock()))
			}
		}
	})
}

func TestNodesTellEachOtherOfWork(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		one, two := newNode(t, s, "one", lease), newNode(t, s, "two", lease)
		one.starts(one.Scheduler.Run)
		worked := make(chan int64, 10)
		one.serves(intake, func(_ context.Context, c *work.Claim) error {
			err := one.settle(c)
			worked <- c.Thread
			return err
		})
		one.Accepted(one.accepts(1, true), nil)
		thread := <-worked
		begun := time.Now()
		two.Accepted(two.accepts(1, true), nil)
		if got := <-worked; got != thread || time.Since(begun) > 0 {
			t.Errorf("thread %d got a worker after %v, want %d", got, time.Since(begun), thread)
		}
		two.serves(turns, func(context.Context, *work.Claim) error { t.Error("another node's turn began"); return nil })
		synctest.Wait()
		two.Wake(work.Turns, "helper", thread)
		synctest.Wait()
		want := []string{fmt.Sprintf("one<- intake %d ", thread), fmt.Sprintf("one<- turns %d helper", thread)}
		if diff := cmp.Diff(want, s.sent); diff != "" {
			t.Error(diff)
		}
	})
}

// TestALostHintDelaysAWorkerByLessThanALease: the node that has the thread asks without a hint
// whether another node has changed its work.
func TestALostHintDelaysAWorkerByLessThanALease(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", lease)
		n.starts(n.Scheduler.Run)
		heard := make(chan int64, 1)
		q := turns
		q.Heard = func(thread int64) { heard <- thread }
		n.serves(q, func(context.Context, *work.Claim) error {
			advance(lease / 2)
			return nil
		})
		synctest.Wait()
		thread := n.accepts(1, true).Thread
		n.Wake(work.Turns, "helper", thread)
		advance(lease / 2)
		select {
		case got := <-heard:
			if got != thread {
				t.Errorf("asks about thread %d, want %d", got, thread)
			}
		default:
			t.Error("asks nothing")
		}
		advance(2 * lease) // without a worker
		if len(heard) > 0 {
			t.Error("asks about a thread without a worker")
		}
	})
}
