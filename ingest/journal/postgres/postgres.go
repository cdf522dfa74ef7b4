// Package postgres keeps a journal in a PostgreSQL database that several nodes
// may share.
//
// Calls of Write that wait at the same time share a transaction on one connection,
// one function after another. What a function can do without a result is sent
// together with the next statement that somebody waits for, and the last of it with
// COMMIT: round trips are what a message costs here. Calls that can't share, since
// one failed or a row is locked elsewhere, are run apart, each in a transaction of
// its own on further connections; so are reads. Statements are prepared once on
// each connection.
//
// A transaction that loses a race is run again. One whose connection breaks is
// run again on another, unless COMMIT was sent: nobody knows then, and the caller
// finds out from its own rows.
package postgres

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/internal/queue"
)

var (
	_ journal.Engine = (*Engine)(nil)
	_ journal.Clock  = (*Engine)(nil)
	_ journal.Bell   = (*Engine)(nil)
)

// Engine is a PostgreSQL database. It implements journal.Engine, journal.Clock
// and journal.Bell.
type Engine struct {
	pool     *pgxpool.Pool
	listen   *pgx.ConnConfig
	log      *slog.Logger
	recorder Recorder
	lines    []*queue.Queue // of the committers
	turn     atomic.Uint64  // whose turn it is to take what is about no thread
	seed     maphash.Seed
	apart    chan *queue.Call // what could not share a transaction
	clock    clock
	rings    rings
	named    bool          // statements are kept prepared
	within   time.Duration // answerWithin
	// unreachable says that the last try to have a connection failed.
	unreachable atomic.Bool

	calls   queue.Calls    // of Write and Read under way
	workers sync.WaitGroup // those that serve the queue, the clock's and the bell's
	closing chan struct{}  // closed when Close begins: nobody waits for a server any more
	quit    chan struct{}  // closed when no call is under way any more
}

// Recorder hears how the journal does.
type Recorder interface {
	// Committed is called after each COMMIT that succeeded, with the number of
	// callers that shared it and how long it took. It is called concurrently, and
	// must return at once.
	Committed(callers int, took time.Duration)
}

// Options say where the database is.
type Options struct {
	// URL is its address, postgres://user:password@host:port/database, with the
	// parameters that libpq and pgxpool know. Behind a transaction pooler that does
	// not know of prepared statements it has default_query_exec_mode=exec: nothing is
	// then left on a connection.
	URL string
	// ListenURL is the address for LISTEN, where URL leads to a transaction pooler
	// such as PgBouncer; empty: as URL.
	ListenURL string
	// Connections is how many are open at the most, beside the one that listens;
	// 0: DefaultConnections.
	Connections int
	Log         *slog.Logger // nil: nothing is logged
	Recorder    Recorder     // nil: nobody hears
}

// DefaultConnections is how many connections a node opens at the most, beside the
// one that listens.
const DefaultConnections = 12

// The connections of a node are shared out: one in three is a committer's, since one
// may use the processor while another's work is being made durable, and one in four is
// for calls that are run apart; the others are for reads.
const (
	committerShare = 3
	apartShare     = 4
)

// Open connects to the database and brings its schema up to date. The engine's
// goroutines keep ctx's values but not its end: Close stops them.
func Open(ctx context.Context, o Options) (*Engine, error) {
	e, err := open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return e, nil
}

func open(ctx context.Context, o Options) (*Engine, error) {
	if o.Connections == 0 {
		o.Connections = DefaultConnections
	}
	config, listen, err := o.parse()
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, config.ConnConfig); err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		pool: pool, listen: listen, log: o.Log, recorder: o.Recorder, seed: maphash.MakeSeed(), named: named(config.ConnConfig), within: answerWithin,
		apart: make(chan *queue.Call, maxCallers), closing: make(chan struct{}), quit: make(chan struct{}), rings: newRings(),
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if e.recorder == nil {
		e.recorder = silent{}
	}
	if err := e.clock.set(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	e.start(context.WithoutCancel(ctx), max(1, o.Connections/committerShare), max(1, o.Connections/apartShare))
	return e, nil
}

// isClosing says whether Close was called.
func (e *Engine) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

func (e *Engine) start(ctx context.Context, committers, apart int) {
	for range committers {
		c := &committer{Engine: e, line: queue.New(), most: maxCallers}
		e.lines = append(e.lines, c.line)
		e.workers.Go(func() { c.serve(ctx) })
	}
	for range apart {
		e.workers.Go(func() { e.serveApart(ctx) })
	}
	e.workers.Go(func() { e.keepTime(ctx) })
	e.workers.Go(func() { e.ringer(ctx) })
}

// Write implements journal.Engine.
func (e *Engine) Write(ctx context.Context, fn func(tx journal.Tx) error) error {
	if !e.calls.Enter() {
		return journal.ErrClosed
	}
	defer e.calls.Leave()
	return e.lineOf(journal.About(ctx)).Submit(ctx, fn)
}

// lineOf is where a call about a thread waits, among others about it.
func (e *Engine) lineOf(thread event.ThreadKey) *queue.Queue {
	at := e.turn.Add(1)
	if thread != "" {
		at = maphash.String(e.seed, string(thread))
	}
	return e.lines[at%uint64(len(e.lines))]
}

// Close finishes the calls under way and closes the connections. Closing twice
// does nothing.
func (e *Engine) Close() error {
	if !e.calls.Close() {
		return nil
	}
	close(e.closing)
	e.calls.Wait()
	close(e.quit)
	e.workers.Wait()
	e.pool.Close()
	return nil
}

type silent struct{}

func (silent) Committed(int, time.Duration) {}
