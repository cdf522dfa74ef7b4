// Package storage runs the journal's transactions on an engine, which is a database.
//
// The parts of the journal are plain SQL that every engine understands. An engine (packages
// sqlite and postgres) opens a database, updates its schema, and commits.
package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/ingest/event"
)

// The errors that an engine's errors wrap.
var (
	// ErrLocked means that another process has the journal open.
	ErrLocked = errors.New("the journal is in use")
	// ErrUnclear means that the outcome is unknown: the transaction may have happened,
	// may still happen, or never will. The caller must not read the variables that its
	// function sets, because the function may still run. It must read the rows to learn
	// the outcome.
	ErrUnclear = errors.New("the outcome is not known yet")
	// ErrClosed means that the engine was closed before the call.
	ErrClosed = errors.New("the journal is closed")
	// ErrUnavailable means that the store failed, and that the data is not the cause: the
	// disk is full, cannot be written, or is busy. The same call may succeed later.
	ErrUnavailable = errors.New("the store cannot be written")
	// ErrFull is an ErrUnavailable: the store has no space left.
	ErrFull = fmt.Errorf("%w: its disk is full", ErrUnavailable)
)

// Unavailable reports whether an error is a failure of the store itself, so that the
// caller should repeat the same call later.
func Unavailable(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnclear) || errors.Is(err, ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// WriteOptions help an engine to order calls of Write. The zero value is right for work
// that no platform waits for.
type WriteOptions struct {
	// Urgent puts the call before calls that are not urgent: a platform waits for it.
	Urgent bool
	// Thread is the key of the thread whose row the call locks. It is empty if there is
	// none or the caller does not know it. Calls about one thread cannot run
	// concurrently.
	Thread event.ThreadKey
	// Queued is called when the call has its place behind the earlier calls about the
	// thread; it may be nil.
	Queued func()
	// Committed is called once after the commit, before the caller gets its result and before a
	// later call about the thread begins; nil for nothing. It must return at once. It is called even
	// if the caller has left.
	Committed func()
	// Batch is the series of calls to which the call belongs; nil for none. A call that fails
	// or whose ctx ends breaks the batch. A later call of a broken batch does not run.
	Batch *event.Batch
}

// Engine is a database of the journal. Queries are written in the SQL that SQLite and
// PostgreSQL share, with $1, $2 … for their arguments, which are int64, string, []byte or
// nil. In a string, U+0000 and invalid UTF-8, which PostgreSQL refuses, become U+FFFD. A
// SELECT may end in FOR UPDATE, or FOR UPDATE SKIP LOCKED, which an engine with one writer
// leaves out. Write a bound LIMIT as CAST($1 AS BIGINT), because SQLite plans a statement
// with a bare one at each call.
type Engine interface {
	// Write runs fn in a transaction and returns after that is durable. An error means
	// that nothing of fn has happened, except for ErrUnclear. Other callers' functions
	// may share the transaction or run concurrently (READ COMMITTED: fn locks with FOR
	// UPDATE the rows that must not change). The engine may run fn again after a failure
	// that fn did not cause. So fn must only use tx and set variables of its caller, and
	// must set them in each run. A panic in fn is returned as an error.
	//
	// ctx bounds the wait, never the transaction. If ctx ends before fn begins, fn never
	// runs, and the error wraps the error of ctx. If ctx ends later, the error also wraps
	// ErrUnclear.
	Write(ctx context.Context, options WriteOptions, fn func(tx Tx) error) error
	// Read runs fn on a snapshot: all its queries see the same state, which includes the
	// result of each Write that has returned before. As with Write, fn may run again. ctx
	// bounds the wait for a connection.
	Read(ctx context.Context, fn func(tx Tx) error) error
	// ReadOne is Read for a function that runs one query, which needs no transaction to
	// see one state.
	ReadOne(ctx context.Context, fn func(tx Tx) error) error
	// Close ends the engine, after the calls that have begun.
	Close() error
}

// Tx is a transaction. After an error of Tx, the function must return that error: the
// transaction may be lost.
type Tx interface {
	// Exec runs a statement and returns how many rows it changed.
	Exec(query string, args ...any) (int64, error)
	// Row reads the first row of a query into dest: *int64, *string, *[]byte, *bool or
	// *time.Time, which is read by Instant; NULL is read as their zero value. A *any gets
	// an int64, string, []byte or nil. It returns false if there is no row.
	Row(dest []any, query string, args ...any) (bool, error)
	// Rows calls each for every row of a query; each scans and may not use tx.
	Rows(each func(scan func(dest ...any) error) error, query string, args ...any) error
	// Later runs a statement whose result the function does not need at once. An engine
	// may send it together with the following statements, in the order of the calls. Its
	// first row, if there is one, has been read into dest when the next Exec, Row or Rows
	// returns, or else when the transaction has ended. If none is not nil and the
	// statement finds or changes no row, the transaction fails with none, now or then.
	Later(none error, dest []any, query string, args ...any) error
	// Tables reads which tables the store has. In a database that others use too, some may be theirs.
	Tables() ([]Table, error)
}

// Recorder receives measurements of an engine.
type Recorder interface {
	// Committed is called after each successful COMMIT. It may be called concurrently, and must
	// return at once.
	Committed(c Commit)
}

// Commit is a transaction that was committed.
type Commit struct {
	Calls int           // that shared it
	Pages int           // that an embedded database wrote to its log
	Trips int           // round trips to a server
	Took  time.Duration // of its COMMIT
	Held  time.Duration // from its beginning to the end of its COMMIT
}

// Eraser is an engine that keeps old states of its rows beside the database for a while.
type Eraser interface {
	// Erased notes that a committed transaction has removed words of people. The engine removes
	// the old states within a minute. Erased never waits.
	Erased()
}

// WordScanner is an engine whose search_words($1) reads each row that has the words, also if only the newest few are wanted.
type WordScanner interface {
	// WordScan returns a table of SQL with the column rowid. It has the rows of search_words($1), and is read in the order of rowid.
	WordScan() string
}

// Clock is an engine whose database and clock several nodes share.
type Clock interface {
	// Now returns the database's time, as exactly as this node knows it.
	Now() time.Time
}

// Notifier is an engine that carries short messages between nodes. Messages may be
// lost: a node that gets none finds its work in the store, only later.
type Notifier interface {
	// Notify sends words to a node, or to all nodes if node is empty. The engine sends
	// them soon, together with others; Notify never waits. It drops words that are
	// longer than 1 KiB.
	Notify(node, words string)
	// Listen calls heard for the words that nodes send to this one, until ctx ends. It
	// calls missed whenever messages may have been lost: at first, and after each break.
	Listen(ctx context.Context, node string, heard func(words string), missed func())
}

// Facts describe the database of an engine.
type Facts struct {
	Schema int64 // version
	Bytes  int64 // that the database takes
	Free   int64 // bytes that are left beside it; 0 if the engine does not know
}

// Describer is an engine that knows facts of its database.
type Describer interface {
	Facts(ctx context.Context) (Facts, error)
}

// Upgrade names the steps that the next start takes on the schema of a store.
type Upgrade struct {
	From  int64    // its version, the number of steps that it has; 0 before the first start
	Steps []string // the files of the steps that follow, in order
}

// To returns the version after the upgrade.
func (u Upgrade) To() int64 { return u.From + int64(len(u.Steps)) }
