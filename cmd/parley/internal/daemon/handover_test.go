package daemon_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/daemon"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// dueQueries gets a value, if it has room, after each query of a node for due turns of the
// agent helper.
type dueQueries chan struct{}

// observe calls fn, which makes one query.
func (q dueQueries) observe(tx storage.Tx, fn func(storage.Tx) error) error {
	return fn(observedTx{tx, q})
}

type observedTx struct {
	storage.Tx
	queries dueQueries
}

func (s observedTx) Rows(row func(scan func(...any) error) error, query string, args ...any) error {
	err := s.Tx.Rows(row, query, args...)
	if strings.Contains(query, "ORDER BY turn_at") && slices.Contains(args, any("helper")) {
		select {
		case s.queries <- struct{}{}:
		default:
		}
	}
	return err
}

// awaitTwo waits until a node has begun a query and ended it.
func (q dueQueries) awaitTwo(h *harness) {
	h.t.Helper()
	select { // a query before this call
	case <-q:
	default:
	}
	for range 2 {
		select {
		case <-q:
		case <-h.ctx.Done():
			h.t.Fatalf("no node asks for due turns\n%s", h.log)
		}
	}
}

// holdingEngine is an embedded store that delays the return of one write, the one that
// records the first message. The message is committed before the delay.
type holdingEngine struct {
	storage.Engine
	queries dueQueries
	began   atomic.Bool
	held    chan struct{} // closed when the write is committed
	release chan struct{}
}

func (e *holdingEngine) Write(ctx context.Context, o storage.WriteOptions, fn func(storage.Tx) error) error {
	err := e.Engine.Write(ctx, o, fn)
	if o.Thread != "" && !o.Urgent && e.began.CompareAndSwap(false, true) {
		close(e.held)
		<-e.release
	}
	return err
}

func (e *holdingEngine) ReadOne(ctx context.Context, fn func(storage.Tx) error) error {
	return e.Engine.ReadOne(ctx, func(tx storage.Tx) error { return e.queries.observe(tx, fn) })
}

// openHolding returns a daemon on a holdingEngine. The daemon's clock stands still.
func openHolding(t *testing.T) (*harness, *holdingEngine) {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(journaltest.Dir(t), "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &holdingEngine{Engine: engine, queries: make(dueQueries, 1), held: make(chan struct{}), release: make(chan struct{})}
	h := open(t, plan{engine: e, clock: &clock{at: time.Now()}})
	h.awaitUp() // otherwise the first write may postpone the message
	return h, e
}

// TestHandOverBeforeResume: the scheduler asks for due turns between the commit that begins a
// run and the hand-over to its worker.
func TestHandOverBeforeResume(t *testing.T) {
	t.Parallel()
	h, store := openHolding(t)
	first := h.mention("one")
	<-store.held
	store.queries.awaitTwo(h)
	if n := len(h.model.asked); n != 0 {
		t.Errorf("the agent was asked %d times before the hand-over", n)
	}
	close(store.release)
	h.checkAnsweredOnce(first, h.answerNext(replyWith("One.")))
}

// TestResumedRunIsNotHandedOver: the hand-over comes after the scheduler has resumed the run
// and its reply is committed.
func TestResumedRunIsNotHandedOver(t *testing.T) {
	t.Parallel()
	h, store := openHolding(t)
	first := h.mention("one")
	<-store.held
	h.clock.advance(2 * time.Second)
	asked := h.answerNext(replyWith("One."))
	h.posts(1)
	close(store.release)
	h.checkAnsweredOnce(first, asked)
}

// checkAnsweredOnce puts a second message into the thread of the first one. Each message must
// be answered once, in a run of its own.
func (h *harness) checkAnsweredOnce(first slacktest.Message, before *modelRequest) {
	h.t.Helper()
	h.posts(1)
	h.follow(first, "two")
	if next := h.answerNext(replyWith("Two.")); next.run == before.run {
		h.t.Errorf("the run %s was asked twice\n%s", next.run, h.log)
	}
	var texts []string
	for _, post := range h.posts(2) {
		texts = append(texts, post.Text)
	}
	same(h.t, texts, []string{"One.", "Two."})
}

// follow mentions the bot in the thread of a message.
func (h *harness) follow(root slacktest.Message, text string) {
	h.t.Helper()
	m := h.newMessage("<@" + slacktest.BotUser + "> " + text)
	m.ThreadTS = root.TS
	h.accept(m.Mention())
}

// watchedEngine is a shared store that reports the queries of its node for due turns.
type watchedEngine struct {
	*postgres.Engine
	queries dueQueries
}

func (e *watchedEngine) ReadOne(ctx context.Context, fn func(storage.Tx) error) error {
	return e.Engine.ReadOne(ctx, func(tx storage.Tx) error { return e.queries.observe(tx, fn) })
}

// TestFollowUpRunsOnOneNode of two: the node that answered in the thread works on the
// follow-up, although its lease of the thread has ended.
func TestFollowUpRunsOnOneNode(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	h := open(t, plan{store: url})
	engine, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	store := &watchedEngine{engine, make(dueQueries, 1)}
	other := &harness{t: t, ctx: h.ctx, dir: h.dir, clock: h.clock, log: new(log), client: h.client, engine: store}
	if err := other.start(filepath.Join(h.dir, "parley.yaml")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.stop() })

	root := h.mention("zero")
	h.answerNext(replyWith("Zero."))
	h.posts(1)
	h.clock.advance(daemon.DefaultLease + time.Second)
	h.follow(root, "one")
	asked := h.nextRequest()
	h.clock.advance(2 * time.Second) // the run is due on every node
	store.queries.awaitTwo(h)
	store.queries.awaitTwo(h)
	if n := len(h.model.asked); n != 0 {
		t.Errorf("the other node asked the agent too\n%s", other.log)
	}
	h.answer(asked, replyWith("One."))
	h.posts(2)
	h.follow(root, "two")
	if next := h.answerNext(replyWith("Two.")); next.run == asked.run {
		t.Errorf("the run %s was asked twice\n%s", next.run, other.log)
	}
	h.posts(3)
}
