package work_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/work"
)

func workIsFoundInTheStore(t *testing.T, s *store) {
	n := newNode(t, s, "one", 0)
	want := map[int64]bool{}
	for i := range 20 {
		want[n.accept(i).Thread] = true
	}
	found := make(chan int64, 100)
	n.serves(intake, func(_ context.Context, c *work.Claim) error {
		defer func() { found <- c.Thread }()
		return n.settle(c)
	})
	for len(want) > 0 {
		delete(want, <-found)
	}
}

func TestAThreadHasOneWorkerAndNoWakeIsLost(t *testing.T) {
	n := newNode(t, openSQLite(t), "one", 0)
	thread := n.accept(1).Thread
	entered, leave := make(chan int32), make(chan struct{})
	var inside atomic.Int32
	n.serves(intake, func(ctx context.Context, c *work.Claim) error {
		defer inside.Add(-1)
		select {
		case entered <- inside.Add(1):
			<-leave
		case <-ctx.Done():
		}
		return n.settle(c)
	})
	if got := <-entered; got != 1 {
		t.Fatalf("%d workers", got)
	}
	for range 10 {
		n.Wake(work.Intake, "", thread)
	}
	n.Wake(work.Intake, "", n.accept(2).Thread)
	if got := <-entered; got != 2 {
		t.Fatalf("%d workers, want 2", got)
	}
	leave <- struct{}{}
	leave <- struct{}{}
	<-entered // the woken thread
	close(leave)
}

func TestTheWorkersOfAThreadShareItsClaim(t *testing.T) {
	n, run := newNode(t, openSQLite(t), "one", 0), work.Slot[int64]{Key: "run"}
	n.serves(intake, func(_ context.Context, c *work.Claim) error {
		if run.Get(c) == 0 {
			run.Put(c, c.Fence)
		}
		if err := n.settle(c); err != nil {
			return err
		}
		n.Wake(work.Turns, "helper", c.Thread)
		return nil
	})
	taken := make(chan [2]any, 10)
	n.serves(turns, func(_ context.Context, c *work.Claim) error {
		taken <- [2]any{c.Fence, run.Take(c)}
		if run.Get(c) != 0 {
			t.Error("Take left the payload")
		}
		return nil
	})
	n.Wake(work.Intake, "", n.accept(1).Thread)
	if got := <-taken; got[0] != got[1] || got[0] == nil {
		t.Errorf("fence %v of the turn, %v of the intake", got[0], got[1])
	}
}

func TestAnAgentDelaysOnlyItsOwnTurns(t *testing.T) {
	n := newNode(t, openSQLite(t), "one", 0)
	for i, agent := range []string{"slow", "quick"} {
		n.accept(i)
		n.exec(`UPDATE threads SET agent = $1, turn_at = 1, pending = 0, intake_at = NULL WHERE agent = ''`, agent)
	}
	stuck, quick, leave := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once, first sync.Once
	n.serves(work.Queue{Kind: work.Turns, Agent: "slow", Slots: 1}, func(context.Context, *work.Claim) error {
		first.Do(func() { close(stuck) })
		<-leave
		return nil
	})
	<-stuck
	n.serves(work.Queue{Kind: work.Turns, Agent: "quick", Slots: 1}, func(context.Context, *work.Claim) error {
		once.Do(func() { close(quick) })
		return nil
	})
	<-quick
	close(leave)
}

func TestSlotsBoundTheWorkers(t *testing.T) {
	n := newNode(t, openSQLite(t), "one", 0)
	const threads = 40
	for i := range threads {
		n.accept(i)
	}
	var inside, most, limit atomic.Int32
	limit.Store(3)
	done := make(chan int64, 1000)
	n.serves(work.Queue{Kind: work.Intake, Slots: 3}, func(_ context.Context, c *work.Claim) error {
		if now := inside.Add(1); now > limit.Load() {
			most.Store(now)
		}
		defer func() { done <- c.Thread }()
		defer inside.Add(-1)
		return n.settle(c)
	})
	for seen := map[int64]bool{}; len(seen) < threads; {
		seen[<-done] = true
		if len(seen) == threads/2 {
			limit.Store(6)
			n.Resize(work.Intake, "", 6)
		}
	}
	if got := most.Load(); got > 0 {
		t.Errorf("%d workers", got)
	}
}

// TestAQueueWithoutSlots leaves its work in the store, also what it is told of, until it has slots again.
func TestAQueueWithoutSlots(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "only", 0)
		var done atomic.Int64
		n.serves(work.Queue{Kind: work.Intake, Slots: 2}, func(_ context.Context, c *work.Claim) error {
			done.Add(1)
			return n.settle(c)
		})
		synctest.Wait()
		n.Resize(work.Intake, "", 0)
		n.accept(1)
		n.Wake(work.Intake, "", n.accept(2).Thread)
		advance(time.Minute)
		if got := done.Load(); got != 0 {
			t.Errorf("%d threads are worked on", got)
		}
		n.Resize(work.Intake, "", 1)
		advance(2 * time.Second)
		if got := done.Load(); got != 2 {
			t.Errorf("%d threads are worked on with a slot", got)
		}
	})
}

// TestAQueueThatDrains finishes the threads that wait in memory when its context ends.
func TestAQueueThatDrains(t *testing.T) {
	for _, drain := range []bool{false, true} {
		inBubble(t, func(t *testing.T, s *store) {
			n := newNode(t, s, "only", 0)
			begun, leave, done := make(chan bool, 2), make(chan bool), 0
			stop := n.serves(work.Queue{Kind: work.Intake, Slots: 1, Drain: drain}, func(context.Context, *work.Claim) error {
				done++
				begun <- true
				<-leave
				return nil
			})
			synctest.Wait()
			n.Accepted(n.accepts(1, true), nil)
			n.Accepted(n.accepts(2, true), nil)
			<-begun
			go func() {
				synctest.Wait() // stop waits for the worker
				close(leave)
			}()
			stop()
			if want := map[bool]int{false: 1, true: 2}[drain]; done != want {
				t.Errorf("drain %v: %d threads", drain, done)
			}
		})
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	n := newNode(t, openSQLite(t), "one", 0)
	if n.Room(work.Intake, "", "") {
		t.Error("room before Serve")
	}
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	n.accept(1)
	n.serves(work.Queue{Kind: work.Intake, Slots: 1}, func(ctx context.Context, _ *work.Claim) error {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-leave
		return nil
	})
	<-entered
	if !n.Room(work.Intake, "", "") {
		t.Error("no room for an envelope in an empty queue")
	}
	for i := range int64(3 * work.QueueLimit) {
		n.Wake(work.Intake, "", 1000+i)
	}
	if got := n.Waiting(work.Intake, ""); got != work.QueueLimit || n.Room(work.Intake, "", "") {
		t.Errorf("%d threads wait in memory, want %d and no room", got, work.QueueLimit)
	}
	close(leave)
}

func TestATurnHasRoomOnlyIfAWorkerIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", 0)
		leave := make(chan struct{})
		n.serves(work.Queue{Kind: work.Turns, Agent: "helper", Slots: 1}, func(context.Context, *work.Claim) error { <-leave; return nil })
		synctest.Wait()
		if !n.Room(work.Turns, "helper", "acme") {
			t.Error("no room with a free worker")
		}
		n.Wake(work.Turns, "helper", n.accept(1).Thread)
		synctest.Wait()
		if n.Room(work.Turns, "helper", "acme") {
			t.Error("room while the only worker is busy")
		}
		close(leave)
	})
}

func aThreadsFirstOpenDeliveryIsDue(t *testing.T, s *store) {
	n := newNode(t, s, "one", 0)
	type delivery struct {
		kind, state string
		due         time.Duration // from now
	}
	now, later := -time.Second, time.Hour
	want, key := []int64(nil), 0
	for i, c := range []struct {
		due  bool
		list []delivery
	}{
		{false, []delivery{{"post", "sent", now}, {"post", "failed", now}}},
		{true, []delivery{{"post", "sent", now}, {"post", "pending", now}, {"post", "pending", later}}},
		{true, []delivery{{"unsign", "pending", later}, {"post", "sending", now}}},
		{false, []delivery{{"post", "pending", later}, {"post", "pending", now}}},
		{false, []delivery{{"unsign", "pending", now}, {"post", "pending", later}}},
		{true, []delivery{{"unsign", "pending", now}, {"post", "sent", later}}},
	} {
		thread := n.accept(i).Thread
		for _, d := range c.list {
			key++
			n.exec(`INSERT INTO deliveries (thread, run, part, key, workspace, channel, place, payload, created_at, kind, state, due_at)
				VALUES ($1, 'run', 0, $2, 'acme', 'C1', '', '', 0, $3, $4, $5)`, thread, fmt.Sprint(key), d.kind, d.state, time.Now().Add(d.due).UnixMilli())
		}
		if c.due {
			want = append(want, thread)
		}
	}
	got, err := n.Due(t.Context(), work.Deliveries)
	n.check(err)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("due %v, want %v", got, want)
	}
}

// TestATurnWaitsForItsIntakeWithoutTransactions covers a due turn whose thread's intake
// is also due, and takes a second.
func TestATurnWaitsForItsIntakeWithoutTransactions(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", 0)
		n.accept(1)
		n.exec(`UPDATE threads SET agent = 'helper', turn_at = 1`)
		s.writes.Store(0)
		s.reads.Store(0)
		n.serves(turns, func(context.Context, *work.Claim) error { t.Error("the turn began"); return nil })
		advance(10 * time.Second)
		if writes, reads := s.writes.Load(), s.reads.Load(); writes > 0 || reads > 11 {
			t.Errorf("%d writes and %d reads in ten seconds", writes, reads)
		}
	})
}

// TestKnownWorkTriggersNoLook covers more due threads than workers, none of which can be
// worked on.
func TestKnownWorkTriggersNoLook(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", 0)
		const threads, seconds = 10, 10
		for i := range threads {
			n.accept(i)
		}
		s.reads.Store(0)
		s.writes.Store(0)
		var calls atomic.Int64
		n.serves(intake, func(context.Context, *work.Claim) error { calls.Add(1); return errors.New("a fault") })
		advance(seconds*time.Second - time.Millisecond)
		if reads := s.reads.Load(); reads > seconds*(threads+1) {
			t.Errorf("%d reads", reads)
		}
		if got := calls.Load(); got < threads*seconds/2 || got > threads*seconds {
			t.Errorf("%d calls for %d threads", got, threads)
		}
		if writes := s.writes.Load(); writes > threads {
			t.Errorf("%d writes", writes)
		}
	})
}

// TestAnUnavailableStoreIsLeftAlone proves that a queue pauses, and logs that at most
// once a second.
func TestAnUnavailableStoreIsLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", 0)
		n.accept(1)
		s.refuses.Store(true)
		s.writes.Store(0)
		worked := make(chan struct{}, 1)
		n.serves(intake, func(_ context.Context, c *work.Claim) error {
			defer func() { worked <- struct{}{} }()
			return n.settle(c)
		})
		n.serves(turns, func(context.Context, *work.Claim) error { return nil })
		advance(10 * time.Second)
		if writes, lines := s.writes.Load(), n.lines.Load(); writes > 10 || lines > 10 || lines == 0 {
			t.Errorf("%d writes and %d log lines in ten seconds", writes, lines)
		}
		s.refuses.Store(false)
		begun := time.Now()
		<-worked
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("work continued %v after the store", took)
		}
	})
}

// TestAFailureOfOneThreadDelaysOnlyIt covers a store that refuses the writes of one
// thread.
func TestAFailureOfOneThreadDelaysOnlyIt(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", 0)
		poor := n.accept(1).Thread
		var tries atomic.Int64
		worked := make(chan struct{}, 10)
		n.serves(intake, func(_ context.Context, c *work.Claim) error {
			if c.Thread == poor {
				tries.Add(1)
				return fmt.Errorf("%w: its row is locked", storage.ErrUnavailable)
			}
			defer func() { worked <- struct{}{} }()
			return n.settle(c)
		})
		synctest.Wait()
		begun := time.Now()
		for i := range 3 {
			n.Wake(work.Intake, "", n.accept(2+i).Thread)
			<-worked
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("other threads waited %v", took)
		}
		advance(10 * time.Second)
		if got := tries.Load(); got < 3 || got > 40 {
			t.Errorf("%d attempts in ten seconds", got)
		}
	})
}

func TestAPanicIsAnErrorOfItsThread(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", 0)
		n.accept(1)
		var calls atomic.Int64
		n.serves(intake, func(_ context.Context, c *work.Claim) error {
			if calls.Add(1) == 1 {
				panic("a bug")
			}
			return n.settle(c)
		})
		advance(3 * time.Second)
		if calls.Load() != 2 || n.lines.Load() != 1 {
			t.Errorf("%d calls, %d log lines", calls.Load(), n.lines.Load())
		}
	})
}

// TestSuspectsRunOneAtATimeBesideTheOthers proves that a waiting suspect has no owner:
// the end of the process would prove nothing about it.
func TestSuspectsRunOneAtATimeBesideTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", 0)
		suspects := map[int64]bool{n.accept(1).Thread: true, n.accept(2).Thread: true}
		entered, leave := make(chan int64, 2), make(chan struct{})
		var other atomic.Int64
		n.serves(work.Queue{Kind: work.Intake, Slots: 1}, func(_ context.Context, c *work.Claim) error {
			switch {
			case !suspects[c.Thread]:
				other.Add(1)
			case !c.Serial():
				advance(time.Millisecond) // a claim of this millisecond may be a new one
				return work.ErrSuspect
			default:
				entered <- c.Thread
				<-leave
			}
			return n.settle(c)
		})
		for i := range 2 {
			advance(11 * time.Second) // a young process runs no suspects
			if len(entered) != 1 {
				t.Fatalf("%d suspects run", len(entered))
			}
			if owned := n.number(`SELECT count(*) FROM threads WHERE owner <> '' AND pending > 0`); owned != 1 {
				t.Errorf("%d threads with work are owned", owned)
			}
			n.Wake(work.Intake, "", n.accept(10+i).Thread)
			synctest.Wait()
			if got := other.Load(); got != int64(i+1) {
				t.Errorf("%d other threads got a worker", got)
			}
			<-entered
			leave <- struct{}{}
		}
		synctest.Wait()
		if left := n.number(`SELECT count(*) FROM threads WHERE pending > 0`); left != 0 {
			t.Errorf("%d threads are left", left)
		}
	})
}

// TestWakeAtIsInTime proves that later work is found when it is due.
func TestWakeAtIsInTime(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", 0)
		n.serves(turns, func(_ context.Context, c *work.Claim) error {
			n.exec(`UPDATE threads SET turn_at = NULL`)
			return nil
		})
		for _, wait := range []time.Duration{100 * time.Millisecond, 700 * time.Millisecond, 5 * time.Second} {
			synctest.Wait()
			n.accept(1)
			at := time.Now().Add(wait)
			n.exec(`UPDATE threads SET agent = 'helper', turn_at = $1, pending = 0, intake_at = NULL`, at.UnixMilli())
			n.WakeAt(work.Turns, "helper", at)
			advance(wait + time.Millisecond)
			synctest.Wait()
			if n.number(`SELECT count(*) FROM threads WHERE turn_at IS NOT NULL`) != 0 {
				t.Errorf("a turn that was due after %v has not begun", wait)
			}
		}
	})
}

// TestWakeAtDuringALook covers work that the look has not seen.
func TestWakeAtDuringALook(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store) {
		n := newNode(t, s, "one", 0)
		n.accept(1)
		const wait = 100 * time.Millisecond
		at := time.Now().Add(wait)
		s.afterRead = sync.OnceFunc(func() {
			n.exec(`UPDATE threads SET agent = 'helper', turn_at = $1, pending = 0, intake_at = NULL`, at.UnixMilli())
			n.WakeAt(work.Turns, "helper", at)
		})
		begun := make(chan time.Duration, 10)
		n.serves(turns, func(context.Context, *work.Claim) error { begun <- time.Since(at); return nil })
		if late := <-begun; late > time.Millisecond {
			t.Errorf("the turn began %v late", late)
		}
	})
}
