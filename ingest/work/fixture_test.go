package work_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/record"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/work"
)

// store is an engine that counts its transactions, can refuse them, and carries hints
// between the nodes of a test.
type store struct {
	storage.Engine
	refuses       atomic.Bool
	reads, writes atomic.Int64
	afterRead     func() // if not nil; set it before the nodes start
	hangs         atomic.Bool
	late          func() error // the write that hung, as the server makes it later

	mu    sync.Mutex
	now   time.Time // zero: the time of the machine or of the bubble
	sent  []string  // the notifications
	hears map[string]func(words string)

	needed map[string]map[string]string // the zero values of the columns that must have one, by table; see columns
}

func newStore(engine storage.Engine) *store {
	return &store{Engine: engine, hears: map[string]func(string){}}
}

func openSQLite(t *testing.T) *store {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(journaltest.Dir(t), "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, engine)
}

func closing(t *testing.T, engine storage.Engine) *store {
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return newStore(engine)
}

// promises are the tests that run with each engine.
var promises = []struct {
	name string
	test func(t *testing.T, s *store)
}{
	{"work is found in the store", workIsFoundInTheStore},
	{"a thread is claimed by one node", aThreadIsClaimedByOneNode},
	{"claims that ended with their process are counted", claimsThatEndedWithTheirProcessAreCounted},
	{"claims are released at close", claimsAreReleasedAtClose},
	{"a lease is renewed as long as a worker needs it", aLeaseIsRenewedAsLongAsAWorkerNeedsIt},
	{"a kept claim outlasts its worker", aKeptClaimOutlastsItsWorker},
	{"a follow up extends the lease", aFollowUpExtendsTheLease},
	{"work of unknown workspaces is left to other nodes", workOfUnknownWorkspacesIsLeftToOtherNodes},
	{"turns of full workspaces wait in the store", turnsOfFullWorkspacesWaitInTheStore},
	{"every due time is corrected after a clock that led, of one process", func(t *testing.T, s *store) { everyDueTimeIsCorrected(t, s, 0) }},
	{"every due time is corrected after a clock that led, of nodes", func(t *testing.T, s *store) { everyDueTimeIsCorrected(t, s, lease) }},
	{"waits that were asked for stay after a restart", waitsThatWereAskedForStay},
	{"a thread's first open delivery is due, and the removal of a sign of work last", aThreadsFirstOpenDeliveryIsDue},
}

func TestSQLite(t *testing.T) {
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) { p.test(t, openSQLite(t)) })
	}
}

func TestPostgreSQL(t *testing.T) {
	database := postgrestest.URL(t)
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			engine, err := postgres.Open(t.Context(), postgres.Options{URL: postgrestest.Schema(t, database), Connections: 4})
			if err != nil {
				t.Fatal(err)
			}
			p.test(t, closing(t, engine))
		})
	}
}

// inBubble runs a test with a store in a bubble, whose clock moves when all goroutines wait.
func inBubble(t *testing.T, test func(t *testing.T, s *store)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, openSQLite(t)) })
}

func (s *store) Write(ctx context.Context, options storage.WriteOptions, fn func(storage.Tx) error) error {
	s.writes.Add(1)
	if s.refuses.Load() {
		return fmt.Errorf("%w: the disk is full", storage.ErrUnavailable)
	}
	if s.hangs.CompareAndSwap(true, false) {
		s.late = func() error { return s.Engine.Write(context.WithoutCancel(ctx), options, fn) }
		<-ctx.Done()
		return fmt.Errorf("%w: %w", storage.ErrUnclear, context.Cause(ctx))
	}
	return s.Engine.Write(ctx, options, fn)
}

func (s *store) ReadOne(ctx context.Context, fn func(storage.Tx) error) error {
	s.reads.Add(1)
	err := s.Engine.ReadOne(ctx, fn)
	if s.afterRead != nil {
		s.afterRead()
	}
	return err
}

// Notify implements storage.Notifier.
func (s *store) Notify(node, words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, node+"<- "+words)
	if hear := s.hears[node]; hear != nil {
		hear(words)
	}
}

// Listen implements storage.Notifier.
func (s *store) Listen(ctx context.Context, node string, heard func(string), missed func()) {
	missed()
	s.mu.Lock()
	s.hears[node] = heard
	s.mu.Unlock()
	<-ctx.Done()
}

func (s *store) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.IsZero() {
		return time.Now()
	}
	return s.now
}

// at sets the clock of the nodes.
func (s *store) at(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// number reads a number from the store.
func (n *node) number(query string, args ...any) (value int64) {
	n.Helper()
	n.check(n.store.Engine.ReadOne(n.Context(), func(tx storage.Tx) error {
		_, err := tx.Row([]any{&value}, query, args...)
		return err
	}))
	return value
}

// node is a process that shares a store.
type node struct {
	*testing.T
	*work.Scheduler
	store   *store
	journal *journal.Journal
	lines   *atomic.Int64 // that it has logged
	serial  int
	name    string
}

// newNode starts a process. A lease of 0 is for the only process of a store.
func newNode(t *testing.T, s *store, name string, lease time.Duration) *node {
	lines := new(atomic.Int64)
	return &node{
		T: t, store: s, lines: lines, name: name, journal: journal.New(s, journal.Options{Node: name, Lease: lease, Now: s.clock}),
		Scheduler: work.New(s, work.Options{Node: name, Lease: lease, Now: s.clock, Log: slog.New(counter{lines})}),
	}
}

// counter is a log that counts its lines.
type counter struct{ lines *atomic.Int64 }

func (counter) Enabled(context.Context, slog.Level) bool    { return true }
func (c counter) Handle(context.Context, slog.Record) error { c.lines.Add(1); return nil }
func (c counter) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c counter) WithGroup(string) slog.Handler             { return c }
func (n *node) claimNow(thread int64) (fence int64, owner string) {
	n.Helper()
	c, owner, err := n.ClaimNow(n.Context(), thread)
	n.check(err)
	return c.Fence, owner
}

// check fails the test, unless the test has ended: its workers end after it.
func (n *node) check(err error) {
	n.Helper()
	if err != nil && n.Context().Err() == nil {
		n.Error(err)
	}
}

// starts runs f until the test ends, or until stop is called.
func (n *node) starts(f func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(n.Context())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			n.Error(err)
		}
	})
	n.Cleanup(stop)
	return stop
}

// serves serves a queue until the test ends, or until stop is called.
func (n *node) serves(q work.Queue, do func(ctx context.Context, c *work.Claim) error) (stop func()) {
	q.Do = do
	return n.starts(func(ctx context.Context) error { return n.Serve(ctx, q) })
}

var (
	intake = work.Queue{Kind: work.Intake, Slots: 4}
	turns  = work.Queue{Kind: work.Turns, Agent: "helper", Slots: 4}
)

// accept accepts an envelope of the nth thread.
func (n *node) accept(thread int) envelopes.AcceptResult { n.Helper(); return n.accepts(thread, false) }

func (n *node) accepts(thread int, claim bool) envelopes.AcceptResult {
	n.Helper()
	n.serial++
	r, err := n.journal.Envelopes.Accept(n.Context(), envelopes.AcceptRequest{
		Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Body: []byte("x")},
		Keys: event.Keys{
			Kind: event.KindMessage, Dedupe: fmt.Sprint(n.name, n.serial), MessageID: fmt.Sprint("C1/", n.name, n.serial),
			Thread: event.ThreadKey(fmt.Sprint("slack:acme:C1:", thread)), Channel: event.Channel{ID: "C1"},
		},
		Claim: claim,
	})
	if err != nil {
		n.Fatal(err)
	}
	return r
}

// settle records what is due in a thread.
func (n *node) settle(c *work.Claim) error {
	pending, err := n.journal.Envelopes.NextEnvelopes(n.Context(), c.Thread, 100)
	for _, p := range pending {
		if err != nil {
			return err
		}
		m := &event.Message{ExternalID: fmt.Sprint("C1/", p.ID), Metadata: event.Metadata{SenderID: "slack:U1", SenderType: event.Human}}
		_, err = n.journal.Recorder.Record(n.Context(), &c.Claim, record.Entry{
			Envelope: p.ID, Workspace: "acme", Event: event.Event{Kind: event.KindMessage, Message: m}, Agent: "helper",
			Decide: func(*event.Message, record.Look) record.Decision {
				return record.Decision{Trigger: messages.TriggerRun, Metadata: []byte("{}")}
			},
		})
	}
	return err
}

// exec changes rows without the journal.
func (n *node) exec(query string, args ...any) {
	n.Helper()
	n.check(n.store.Engine.Write(n.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	}))
}

// advance lets the time of a bubble pass.
func advance(d time.Duration) { <-time.After(d) }
