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
	"parley/ingest/journal"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/sqlite"
)

// looks gets a value, if there is room, for each look of a node for due turns of the
// agent helper.
type looks chan struct{}

// see calls fn, which reads with one query.
func (l looks) see(tx journal.Tx, fn func(journal.Tx) error) error { return fn(seen{tx, l}) }

type seen struct {
	journal.Tx
	looks looks
}

func (s seen) Rows(row func(scan func(...any) error) error, query string, args ...any) error {
	err := s.Tx.Rows(row, query, args...)
	if strings.Contains(query, "ORDER BY turn_at") && slices.Contains(args, any("helper")) {
		select {
		case s.looks <- struct{}{}:
		default:
		}
	}
	return err
}

// twice waits until a node has begun a look and ended it.
func (l looks) twice(h *house) {
	h.t.Helper()
	select { // a look before this call
	case <-l:
	default:
	}
	for range 2 {
		select {
		case <-l:
		case <-h.ctx.Done():
			h.t.Fatalf("nobody looks for due turns\n%s", h.log)
		}
	}
}

// holding is an embedded store that holds the return of one write: the one that records
// the first message. The message is committed by then.
type holding struct {
	journal.Engine
	looks   looks
	began   atomic.Bool
	held    chan struct{} // closed when the write is committed
	release chan struct{}
}

func (e *holding) Write(ctx context.Context, o journal.WriteOptions, fn func(journal.Tx) error) error {
	err := e.Engine.Write(ctx, o, fn)
	if o.Thread != "" && !o.Urgent && e.began.CompareAndSwap(false, true) {
		close(e.held)
		<-e.release
	}
	return err
}

func (e *holding) ReadOne(ctx context.Context, fn func(journal.Tx) error) error {
	return e.Engine.ReadOne(ctx, func(tx journal.Tx) error { return e.looks.see(tx, fn) })
}

// openHolding returns a daemon on a store that holds the return of the write which
// records the first message. Its clock stands still.
func openHolding(t *testing.T) (*house, *holding) {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	e := &holding{Engine: engine, looks: make(looks, 1), held: make(chan struct{}), release: make(chan struct{})}
	return open(t, plan{engine: e, clock: &clock{at: time.Now()}}), e
}

// TestARunIsHandedOverBeforeAnybodyResumesIt: the scheduler looks for due turns between
// the commit that begins a run and the hand-over to its worker.
func TestARunIsHandedOverBeforeAnybodyResumesIt(t *testing.T) {
	t.Parallel()
	h, store := openHolding(t)
	first := h.mention("one")
	<-store.held
	store.looks.twice(h)
	if n := len(h.model.asked); n != 0 {
		t.Errorf("the agent was asked %d times before the hand-over", n)
	}
	close(store.release)
	h.onceAnswered(first, h.asks(says("One.")))
}

// TestARunThatWasResumedIsNotHandedOver: the hand-over comes so late that the scheduler
// has resumed the run, and that its reply is committed.
func TestARunThatWasResumedIsNotHandedOver(t *testing.T) {
	t.Parallel()
	h, store := openHolding(t)
	first := h.mention("one")
	<-store.held
	h.clock.advance(2 * time.Second)
	asked := h.asks(says("One."))
	h.posts(1)
	close(store.release)
	h.onceAnswered(first, asked)
}

// onceAnswered fails the test unless the next request to the agent is about a further
// message in the thread of a message that was asked before, and both are answered once.
func (h *house) onceAnswered(first slacktest.Message, before *ask) {
	h.t.Helper()
	h.posts(1)
	h.follow(first, "two")
	if next := h.asks(says("Two.")); next.run == before.run {
		h.t.Errorf("the run %s was asked twice\n%s", next.run, h.log)
	}
	var texts []string
	for _, post := range h.posts(2) {
		texts = append(texts, post.Text)
	}
	same(h.t, texts, []string{"One.", "Two."})
}

// follow mentions the bot in the thread of a message.
func (h *house) follow(root slacktest.Message, text string) {
	h.t.Helper()
	m := h.said("<@" + slacktest.BotUser + "> " + text)
	m.ThreadTS = root.TS
	h.accept(m.Mention())
}

// watched is a shared store that tells when its node looks for due turns.
type watched struct {
	*postgres.Engine
	looks looks
}

func (e *watched) ReadOne(ctx context.Context, fn func(journal.Tx) error) error {
	return e.Engine.ReadOne(ctx, func(tx journal.Tx) error { return e.looks.see(tx, fn) })
}

// TestAFollowUpIsAskedByOneNode of two: the node that answered in the thread works on the
// follow-up, although its lease of the thread had ended.
func TestAFollowUpIsAskedByOneNode(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	h := open(t, plan{store: url})
	engine, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 4})
	if err != nil {
		t.Fatal(err)
	}
	store := &watched{engine, make(looks, 1)}
	other := &house{t: t, ctx: h.ctx, dir: h.dir, clock: h.clock, log: new(log), client: h.client, engine: store}
	if err := other.start(filepath.Join(h.dir, "parley.yaml")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.stop() })

	root := h.mention("zero")
	h.asks(says("Zero."))
	h.posts(1)
	h.clock.advance(daemon.DefaultLease + time.Second)
	h.follow(root, "one")
	asked := h.ask()
	h.clock.advance(2 * time.Second) // the run is due for everybody
	store.looks.twice(h)
	store.looks.twice(h)
	if n := len(h.model.asked); n != 0 {
		t.Errorf("another node asked the agent, too\n%s", other.log)
	}
	h.answer(asked, says("One."))
	h.posts(2)
	h.follow(root, "two")
	if next := h.asks(says("Two.")); next.run == asked.run {
		t.Errorf("the run %s was asked twice\n%s", next.run, other.log)
	}
	h.posts(3)
}
