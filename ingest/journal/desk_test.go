package journal_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/sqlite"
)

// office is a desk with its journal, and the lanes that a test serves.
type office struct {
	*testing.T
	ctx     context.Context
	journal *journal.Journal
	desk    *journal.Desk
	log     *slog.Logger
	serial  int
}

// newStore returns an empty store of the test's own.
func newStore(t *testing.T) journal.Engine {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

func newOffice(t *testing.T) *office {
	t.Helper()
	return newDesk(t, newStore(t), "first", 0)
}

func newDesk(t *testing.T, engine journal.Engine, node string, lease time.Duration) *office {
	j := journal.New(engine, journal.Options{Node: node, Lease: lease})
	log := slog.New(slog.DiscardHandler)
	return &office{T: t, ctx: t.Context(), journal: j, desk: journal.NewDesk(j, log), log: log}
}

// serve serves a lane until the test ends, or until stop is called.
func (o *office) serve(lane journal.Lane, do func(ctx context.Context, lease *journal.Lease)) (stop func()) {
	o.Helper()
	ctx, cancel := context.WithCancel(o.ctx)
	done := make(chan error, 1)
	go func() { done <- o.desk.Serve(ctx, lane, do) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			o.Error(err)
		}
	})
	o.Cleanup(stop)
	return stop
}

// accept puts an envelope into the nth thread.
func (o *office) accept(n int) journal.Custody {
	o.Helper()
	o.serial++
	custody, err := o.journal.Accept(o.ctx, journal.Acceptance{
		Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Body: []byte("x")},
		Keys: event.Keys{
			Kind: event.KindMessage, Dedupe: fmt.Sprint(o.serial), Subject: fmt.Sprint("C1/", o.serial),
			Thread: event.ThreadKey(fmt.Sprint("slack:acme:C1:", n)), Channel: event.Channel{ID: "C1"},
		},
	})
	if err != nil {
		o.Fatal(err)
	}
	return custody
}

// settle ends what is due in a thread, so that its intake is not due any more.
func (o *office) settle(lease *journal.Lease, agent string) {
	pending, err := o.journal.NextEnvelopes(o.ctx, lease.Thread, 100)
	for _, p := range pending {
		if err != nil {
			break
		}
		m := &event.Message{ExternalID: fmt.Sprint("C1/", p.ID), Metadata: event.Metadata{SenderID: "slack:U1", SenderType: event.Human}}
		_, err = o.journal.Record(o.ctx, lease, journal.Entry{
			Envelope: p.ID, Workspace: "acme", Event: event.Event{Kind: event.KindMessage, Message: m}, Agent: agent,
			Decide: func(*event.Message, journal.Look) (journal.Decision, error) {
				return journal.Decision{Trigger: journal.TriggerRun, Metadata: []byte("{}")}, nil
			},
		})
	}
	o.check(err)
}

// check fails the test, unless the test has ended: its workers end after it.
func (o *office) check(err error) {
	if err != nil && o.ctx.Err() == nil {
		o.Error(err)
	}
}

// begin begins the thread's run.
func (o *office) begin(lease *journal.Lease, agent string) *journal.Run {
	run, err := o.journal.BeginRun(o.ctx, lease, agent, func(string, string) bool { return false })
	o.check(err)
	return run
}

// answer ends a run with a post.
func (o *office) answer(lease *journal.Lease, run *journal.Run) {
	_, err := o.journal.CommitReply(o.ctx, lease, run, journal.Reply{
		Content: "a", Posts: []journal.Post{{Channel: "C1", Text: "a"}}, Stale: "send",
		Metadata: func(string, time.Duration) ([]byte, error) { return []byte("{}"), nil },
	})
	o.check(err)
}

var intake = journal.Lane{Work: journal.Intake, Slots: 4}

func TestDeskFindsWorkByScanning(t *testing.T) {
	o := newOffice(t)
	want := map[int64]bool{}
	for n := range 20 {
		want[o.accept(n).Thread] = true
	}
	found := make(chan int64, 100)
	o.serve(intake, func(_ context.Context, lease *journal.Lease) {
		o.settle(lease, "helper")
		found <- lease.Thread
	})
	for len(want) > 0 {
		delete(want, <-found)
	}
}

func TestDeskGivesAThreadToOneWorker(t *testing.T) {
	o := newOffice(t)
	thread := o.accept(1).Thread
	entered, leave := make(chan int32), make(chan struct{})
	var inside atomic.Int32
	o.serve(intake, func(ctx context.Context, _ *journal.Lease) {
		select {
		case entered <- inside.Add(1):
			<-leave
		case <-ctx.Done():
		}
		inside.Add(-1)
	})
	if n := <-entered; n != 1 {
		t.Fatalf("%d workers at once", n)
	}
	for range 10 {
		o.desk.Wake(journal.Intake, "", thread)
	}
	other := o.accept(2).Thread
	o.desk.Wake(journal.Intake, "", other)
	if n := <-entered; n != 2 {
		t.Fatalf("another thread's worker is number %d", n)
	}
	leave <- struct{}{} // one of the two; a wake during the first one's work is not lost
	if n := <-entered; n != 2 {
		t.Fatalf("%d workers for two threads", n)
	}
	close(leave)
}

func TestDeskDoesNotLoseAWakeDuringWork(t *testing.T) {
	o := newOffice(t)
	thread := o.accept(1).Thread
	entered, leave := make(chan struct{}), make(chan struct{})
	o.serve(intake, func(_ context.Context, lease *journal.Lease) {
		o.settle(lease, "helper") // it sees no more than what is there now
		entered <- struct{}{}
		<-leave
	})
	<-entered
	o.accept(1)
	o.desk.Wake(journal.Intake, "", thread)
	leave <- struct{}{}
	<-entered
	close(leave)
}

func TestDeskWorksOnAThreadSideBySideUnderOneLease(t *testing.T) {
	o := newOffice(t)
	leases := make(chan journal.Lease, 3)
	var together sync.WaitGroup // passes once all three are at work
	together.Add(3)
	meet := func(lease *journal.Lease) {
		leases <- *lease
		together.Done()
		together.Wait()
	}
	var once [3]sync.Once
	settled, answered := make(chan struct{}), make(chan struct{})
	o.serve(intake, func(_ context.Context, lease *journal.Lease) {
		o.settle(lease, "helper")
		once[0].Do(func() {
			close(settled)
			o.desk.Wake(journal.Turns, "helper", lease.Thread)
			meet(lease)
		})
	})
	o.serve(journal.Lane{Work: journal.Turns, Agent: "helper", Slots: 1}, func(_ context.Context, lease *journal.Lease) {
		once[1].Do(func() {
			<-settled
			o.answer(lease, o.begin(lease, "helper"))
			close(answered)
			o.desk.Wake(journal.Deliveries, "", lease.Thread)
			meet(lease)
		})
	})
	o.serve(journal.Lane{Work: journal.Deliveries, Slots: 1}, func(_ context.Context, lease *journal.Lease) {
		once[2].Do(func() {
			<-answered
			meet(lease)
		})
	})
	o.desk.Wake(journal.Intake, "", o.accept(1).Thread)
	together.Wait()
	first, second, third := <-leases, <-leases, <-leases
	if first != second || second != third {
		t.Fatalf("leases %v, %v, %v", first, second, third)
	}
}

func TestDeskServesEachAgentByItself(t *testing.T) {
	o := newOffice(t)
	o.settleAs(o.accept(1).Thread, "slow")
	o.settleAs(o.accept(2).Thread, "quick")
	stuck, quick, leave := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	o.serve(journal.Lane{Work: journal.Turns, Agent: "slow", Slots: 1}, func(context.Context, *journal.Lease) {
		once.Do(func() { close(stuck) })
		<-leave
	})
	<-stuck
	o.serve(journal.Lane{Work: journal.Turns, Agent: "quick", Slots: 1}, func(_ context.Context, lease *journal.Lease) {
		if run := o.begin(lease, "quick"); run != nil {
			o.answer(lease, run)
			close(quick)
		}
	})
	<-quick
	close(leave)
}

// settleAs settles a thread's envelopes for an agent, without the desk.
func (o *office) settleAs(thread int64, agent string) {
	o.Helper()
	lease, err := o.journal.Claim(o.ctx, thread, journal.Intake)
	if err != nil {
		o.Fatal(err)
	}
	o.settle(lease, agent)
}

func TestDeskBoundsWhatGoesOnAtOnce(t *testing.T) {
	o := newOffice(t)
	const threads, slots = 40, 3
	for n := range threads {
		o.accept(n)
	}
	var inside, most atomic.Int32
	done := make(chan int64, 1000)
	o.serve(journal.Lane{Work: journal.Intake, Slots: slots}, func(_ context.Context, lease *journal.Lease) {
		n := inside.Add(1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		o.settle(lease, "helper")
		inside.Add(-1)
		done <- lease.Thread
	})
	seen := map[int64]bool{}
	for len(seen) < threads {
		seen[<-done] = true
	}
	if n := most.Load(); n > slots {
		t.Errorf("%d at once, want at most %d", n, slots)
	}
}

func TestDeskSaysWhetherWorkCouldBeginSoon(t *testing.T) {
	o := newOffice(t)
	if o.desk.Soon(journal.Intake, "") {
		t.Error("soon before anybody serves")
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	o.accept(1)
	stop := o.serve(journal.Lane{Work: journal.Intake, Slots: 1}, func(context.Context, *journal.Lease) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-leave
	})
	<-entered
	waiting := 0
	for ; o.desk.Soon(journal.Intake, ""); waiting++ {
		o.desk.Wake(journal.Intake, "", 1000+int64(waiting))
	}
	if waiting == 0 {
		t.Error("not soon while nobody waits behind the only worker")
	}
	close(leave)
	stop()
}

func TestDeskAdoptsWhatAcceptHasClaimed(t *testing.T) {
	o := newOffice(t)
	custody, err := o.journal.Accept(o.ctx, journal.Acceptance{
		Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Body: []byte("x")},
		Keys:     event.Keys{Kind: event.KindMessage, Dedupe: "1", Thread: "slack:acme:C1:1"},
		Claim:    true,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := journal.Lease{Thread: custody.Thread, Fence: custody.Fence, Key: "slack:acme:C1:1"}
	o.desk.Accepted(custody)
	got := make(chan journal.Lease, 1)
	o.serve(intake, func(_ context.Context, lease *journal.Lease) {
		o.settle(lease, "helper")
		select {
		case got <- *lease:
		default:
		}
	})
	if diff := cmp.Diff(want, <-got); diff != "" {
		t.Error(diff)
	}
}

func TestDeskClaimsAnewWhatItHasLost(t *testing.T) {
	o := newOffice(t)
	o.accept(1)
	fences := make(chan int64, 2)
	first := true
	o.serve(intake, func(_ context.Context, lease *journal.Lease) {
		fences <- lease.Fence
		if first {
			first = false
			o.desk.Lost(lease)
			return
		}
		o.settle(lease, "helper")
	})
	if before, after := <-fences, <-fences; after != before+1 {
		t.Errorf("fence %d, then %d", before, after)
	}
}

func TestDeskLeavesTheQuarantinedAlone(t *testing.T) {
	o := newOffice(t)
	poison := o.accept(1).Thread
	for n := range 10 {
		o.accept(2 + n)
	}
	var others atomic.Int32
	alone := make(chan int32, 100) // a thread that is woken meanwhile is worked on again
	done := make(chan struct{}, 100)
	o.serve(intake, func(_ context.Context, lease *journal.Lease) {
		if lease.Thread == poison {
			o.desk.Alone(func() {
				o.settle(lease, "helper")
				alone <- others.Load()
			})
			return
		}
		others.Add(1)
		o.settle(lease, "helper")
		others.Add(-1)
		done <- struct{}{}
	})
	if n := <-alone; n != 0 {
		t.Errorf("%d others at work", n)
	}
	for range 10 {
		<-done
	}
}

func TestDeskGivesItsThreadsBackWhenItCloses(t *testing.T) {
	engine := newStore(t)
	first := newDesk(t, engine, "first", time.Hour)
	second := newDesk(t, engine, "second", time.Hour)
	thread := first.accept(1).Thread
	worked := make(chan struct{}, 1)
	stop := first.serve(intake, func(_ context.Context, lease *journal.Lease) {
		first.settle(lease, "helper")
		worked <- struct{}{}
	})
	<-worked
	stop()

	lease, err := second.journal.Claim(t.Context(), thread, journal.Turns)
	if err != nil || lease != nil {
		t.Fatalf("claimed while it is held: %v, %v", lease, err)
	}
	if err := first.desk.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, err = second.journal.Claim(t.Context(), thread, journal.Turns)
	if err != nil || lease == nil {
		t.Fatalf("not given back: %v, %v", lease, err)
	}
	if n := first.desk.Held(); n != 0 {
		t.Errorf("%d threads are held", n)
	}
}

func TestDeskBoundsItsQueue(t *testing.T) {
	o := newOffice(t)
	o.accept(1)
	entered, leave := make(chan struct{}), make(chan struct{})
	stop := o.serve(journal.Lane{Work: journal.Intake, Slots: 1}, func(context.Context, *journal.Lease) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-leave
	})
	<-entered
	for n := range int64(3 * journal.QueueLimit) {
		o.desk.Wake(journal.Intake, "", 1000+n)
	}
	if n := o.desk.Queued(journal.Intake, ""); n != journal.QueueLimit {
		t.Errorf("%d threads wait in memory, want %d", n, journal.QueueLimit)
	}
	go stop()
	close(leave)
	stop()
}
