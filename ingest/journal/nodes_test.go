package journal_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
	"parley/ingest/journal"
)

// town is a store that several nodes share, with a bell and a clock of the test's.
type town struct {
	journal.Engine

	mu    sync.Mutex
	now   time.Time
	rung  []string
	hears map[string]func(words string)
}

func newTown(t *testing.T) *town {
	t.Helper()
	return &town{Engine: newStore(t), now: time.Now(), hears: map[string]func(string){}}
}

var _ journal.Bell = (*town)(nil)

// Ring implements journal.Bell.
func (c *town) Ring(node, words string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rung = append(c.rung, node+"<- "+words)
	if hear := c.hears[node]; hear != nil {
		hear(words)
	}
}

// Listen implements journal.Bell.
func (c *town) Listen(ctx context.Context, node string, heard func(string), missed func()) error {
	missed()
	c.mu.Lock()
	c.hears[node] = heard
	c.mu.Unlock()
	<-ctx.Done()
	return nil
}

func (c *town) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *town) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// node is one of the town's.
func (c *town) node(t *testing.T, name string) *office {
	o := newDesk(t, c, name, time.Minute)
	o.journal = journal.New(c, journal.Options{Node: name, Lease: time.Minute, Now: c.clock})
	o.desk = journal.NewDesk(o.journal, o.log)
	return o
}

// claims takes custody for a thread that this node may claim.
func (o *office) claims(key event.ThreadKey, dedupe string) journal.Custody {
	o.Helper()
	custody, err := o.journal.Accept(o.ctx, journal.Acceptance{
		Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Body: []byte("x")},
		Keys:     event.Keys{Kind: event.KindMessage, Dedupe: dedupe, Thread: key, Channel: event.Channel{ID: "C1"}},
		Claim:    true,
	})
	if err != nil {
		o.Fatal(err)
	}
	return custody
}

func TestWorkForAnothersThreadIsToldToIt(t *testing.T) {
	town := newTown(t)
	first, second := town.node(t, "first"), town.node(t, "second")
	first.claims("slack:acme:C1:1", "1")
	custody := second.claims("slack:acme:C1:1", "2")
	second.desk.Accepted(custody)
	if diff := cmp.Diff([]string{"first<- intake 1 "}, town.rung); diff != "" {
		t.Error(diff)
	}
}

func TestWhatANodeHearsOfIsWorkedOn(t *testing.T) {
	town := newTown(t)
	first, second := town.node(t, "first"), town.node(t, "second")
	worked := make(chan int64, 10)
	first.desk.Accepted(first.claims("slack:acme:C1:1", "1"))
	first.serve(intake, func(_ context.Context, lease *journal.Lease) {
		first.settle(lease, "helper")
		worked <- lease.Thread
	})
	thread := <-worked
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- first.desk.Run(ctx) }()
	second.desk.Accepted(second.claims("slack:acme:C1:1", "2"))
	if got := <-worked; got != thread {
		t.Errorf("thread %d was worked on, want %d", got, thread)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestALeaseIsRenewedAsLongAsSomebodyWorks(t *testing.T) {
	town := newTown(t)
	first, second := town.node(t, "first"), town.node(t, "second")
	custody := first.claims("slack:acme:C1:1", "1")
	first.desk.Accepted(custody)
	entered, leave := make(chan struct{}), make(chan struct{})
	stop := first.serve(intake, func(context.Context, *journal.Lease) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-leave
	})
	<-entered
	for range 3 {
		town.advance(50 * time.Second)
		first.desk.Sweep(t.Context())
		if lease, err := second.journal.Claim(t.Context(), custody.Thread, journal.Intake); lease != nil || err != nil {
			t.Fatalf("claimed while somebody works on it: %v, %v", lease, err)
		}
	}
	close(leave)
	stop()
	town.advance(time.Minute)
	first.desk.Sweep(t.Context())
	if lease, err := second.journal.Claim(t.Context(), custody.Thread, journal.Intake); lease == nil || err != nil {
		t.Fatalf("not free once nobody has worked on it for a lease: %v, %v", lease, err)
	}
	for range 2 {
		first.desk.Sweep(t.Context())
	}
	if n := first.desk.Held(); n != 0 {
		t.Errorf("%d threads are held", n)
	}
}
