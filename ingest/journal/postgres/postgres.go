// Package postgres keeps a journal in a PostgreSQL database that several nodes may share.
//
// Calls of Write that wait at the same time share a transaction. Statements without a
// needed result travel in one round trip with the next statement, the last of them with
// COMMIT. If a shared transaction fails, or meets a row that another node has locked,
// each of its calls runs again in its own transaction on a further connection. pgx
// prepares statements once per connection.
//
// A shared transaction has little time, because accepts and the renewals of leases wait
// behind it. If a connection breaks or is silent for too long, the pool replaces all
// connections.
//
// The engine repeats a transaction that lost a race, or whose connection broke before
// COMMIT was sent. If the connection breaks after that, the outcome is unclear, and the
// caller must look at its rows.
package postgres

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley/ingest/journal/internal/queue"
	"parley/ingest/journal/storage"
)

var (
	_ storage.Engine      = (*Engine)(nil)
	_ storage.Clock       = (*Engine)(nil)
	_ storage.Notifier    = (*Engine)(nil)
	_ storage.Describer   = (*Engine)(nil)
	_ storage.WordScanner = (*Engine)(nil)
)

// Engine is a PostgreSQL database. It implements storage.Engine, storage.Clock and
// storage.Notifier.
type Engine struct {
	pool       *pgxpool.Pool
	listen     *pgx.ConnConfig
	log        *slog.Logger
	recorder   storage.Recorder // nil: no recorder
	lines      []*queue.Queue   // one per committer
	turn       atomic.Uint64    // selects the line of a call that names no thread
	seed       maphash.Seed
	apart      chan struct{} // has a value for each call that runs alone
	clock      clock
	readClock  func()        // sets the clock, if the server answers
	notices    chan notice   // messages that wait to be sent
	keepsState bool          // settings and prepared statements last on a connection
	within     time.Duration // answerWithin

	calls   queue.Calls    // running calls of Write and Read
	workers sync.WaitGroup // the goroutines of the engine
	giveUp  func()         // makes the workers give up an unreachable server
	quit    chan struct{}  // closed when the last call has ended
}

// Options describe the database and its connections.
type Options struct {
	// URL is the address, postgres://user:password@host:port/database, with the
	// parameters of libpq and pgxpool. Behind a transaction pooler that does not support
	// prepared statements, it needs default_query_exec_mode=exec: the engine then leaves
	// no state on a connection.
	URL string
	// ListenURL is the address for LISTEN, if URL leads to a transaction pooler such as
	// PgBouncer. If it is empty, LISTEN uses URL.
	ListenURL string
	// Connections bounds the open connections, besides the one that listens. 0 means
	// DefaultConnections.
	Connections int
	// KeepSchema makes Open fail with ErrOtherSchema instead of updating the schema.
	KeepSchema bool
	Log        *slog.Logger     // nil: no log
	Recorder   storage.Recorder // nil: no measurements
}

// DefaultConnections is the default bound of a node's open connections, besides the one
// that listens.
const DefaultConnections = 12

// One in three connections belongs to a committer: one of them may use the processor
// while the server flushes another one's work. One in four is for calls that run alone.
// The others are for reads.
const (
	committerShare = 3
	apartShare     = 4
)

// Open connects to the database and updates its schema, unless Options.KeepSchema is set. The end of ctx does not stop
// the engine; Close does.
func Open(ctx context.Context, o Options) (*Engine, error) {
	e, err := open(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	return e, nil
}

func open(ctx context.Context, o Options) (*Engine, error) {
	o.Connections = cmp.Or(o.Connections, DefaultConnections)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	config, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	listen, err := parse(cmp.Or(o.ListenURL, o.URL))
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(o.Connections)
	keepsState := config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
	if keepsState {
		config.AfterConnect = configure
	}
	first := prepare
	if o.KeepSchema {
		first = keep
	}
	if err := insist(func() error { return first(ctx, config.ConnConfig) }); err != nil {
		return nil, err
	}
	var pool *pgxpool.Pool
	config.BeforeClose = func(c *pgx.Conn) {
		if c.IsClosed() { // it broke, perhaps while the pool pinged it
			_ = c.PgConn().Conn().Close() // or its place stays taken while pgx waits for the server's last words
			pool.Reset()
		}
	}
	pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, err
	}
	working, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	e := &Engine{
		pool: pool, listen: listen.ConnConfig, log: o.Log, recorder: o.Recorder,
		seed: maphash.MakeSeed(), apart: make(chan struct{}, max(1, o.Connections/apartShare)),
		notices: make(chan notice, maxWaiting), keepsState: keepsState,
		within: answerWithin, quit: make(chan struct{}), giveUp: giveUp,
	}
	e.readClock = func() {
		if err := e.clock.set(working, pool); err != nil {
			e.log.Debug("the database's clock cannot be read", "err", err)
		}
	}
	if err := insist(func() error { return e.clock.set(ctx, pool) }); err != nil {
		giveUp()
		pool.Close()
		return nil, err
	}
	for range max(1, o.Connections/committerShare) {
		c := &committer{Engine: e, line: queue.New(), most: maxCallers}
		e.lines = append(e.lines, c.line)
		e.workers.Go(func() { c.serve(working) })
	}
	e.workers.Go(e.keepTime)
	e.workers.Go(func() { e.sendNotices(working) })
	return e, nil
}

// openTries bounds the calls of one step of Open.
const openTries = 3

// insist calls a step of Open again if its connection broke off: the server works, and another
// connection may hold.
func insist(step func() error) (err error) {
	for range openTries {
		if err = step(); !brokeOff(err) {
			break
		}
	}
	return err
}

// Facts implements storage.Describer. The bytes are those of the whole database.
func (e *Engine) Facts(ctx context.Context) (f storage.Facts, err error) {
	err = e.ReadOne(ctx, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&f.Schema, &f.Bytes}, `SELECT (SELECT max(version) FROM schema_migrations), pg_database_size(current_database())`)
		return err
	})
	return f, err
}

// Close finishes the running calls and closes the connections. If the server cannot be
// reached, the calls end with an error. Closing twice does nothing.
func (e *Engine) Close() error {
	if !e.calls.Close() {
		return nil
	}
	defer time.AfterFunc(waitOut, e.giveUp).Stop()
	e.calls.Wait()
	close(e.quit)
	e.workers.Wait()
	e.giveUp()
	e.pool.Close()
	return nil
}
