// Package journal stores envelopes, messages, runs and deliveries durably, in
// order, each once.
//
// The logic is plain SQL that every engine understands and stands here once; an
// engine (package sqlite) knows how to open a database, bring its schema up to
// date, and commit.
package journal

import (
	"context"
	"errors"
)

// What an engine's errors wrap beside the engine's own words.
var (
	// ErrLocked means that another process has the journal open.
	ErrLocked = errors.New("the journal is in use")
	// ErrUnclear means that the outcome is not known yet: the transaction may
	// have happened, may still happen, or never will. The caller must not read
	// what its function sets, since that may still be running, and finds out by
	// looking at the rows.
	ErrUnclear = errors.New("the outcome is not known yet")
	// ErrClosed means that the engine was closed before the call.
	ErrClosed = errors.New("the journal is closed")
	// ErrUnavailable means that the store failed, not what it was asked to keep:
	// the disk is full, can't be written, or is busy. The same call may succeed later.
	ErrUnavailable = errors.New("the store can't be written")
)

// Unavailable says whether an error is the store's own trouble, so that the same
// call should be made again later.
func Unavailable(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUnclear) || errors.Is(err, ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// urgentKey marks a context.
type urgentKey struct{}

// Urgent marks a call of Write that somebody outside is waiting for, such as
// custody: it goes before the work that is done behind the acknowledgement.
func Urgent(ctx context.Context) context.Context { return context.WithValue(ctx, urgentKey{}, true) }

// IsUrgent says whether a call was marked by Urgent.
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }

// Engine is a database as the journal uses it. Queries are written with ? or
// ?1, ?2 … for their arguments, which are int64, string, []byte or nil. A bound
// LIMIT is written CAST(? AS BIGINT): SQLite plans a statement anew each time
// that a bare one is bound.
type Engine interface {
	// Write runs fn in a transaction and returns once that is durable: an error
	// means that nothing of fn has happened, with the exception of ErrUnclear.
	// Other callers' functions may share the transaction, and fn may be run
	// again after a failure that was not its own: it must do nothing but use tx
	// and set variables of its caller, and must set them anew in each run. A
	// panic in fn is returned as an error.
	//
	// ctx bounds the wait, never the transaction. A call whose ctx ends before fn
	// was begun is withdrawn: fn never runs, and the error wraps ctx's. Where it
	// ends later the error wraps ErrUnclear as well.
	Write(ctx context.Context, fn func(tx Tx) error) error
	// Read runs fn on a snapshot: all its queries see the same state, which
	// holds everything that Write had returned for before. ctx bounds the wait
	// for a connection.
	Read(ctx context.Context, fn func(tx Tx) error) error
	// Close ends the engine; calls under way are finished first.
	Close() error
}

// Tx is what a function may do inside a transaction.
type Tx interface {
	// Exec runs a statement and returns how many rows it changed. A constraint
	// that is violated undoes the statement alone; after any other error the
	// transaction is lost, and every further call returns that error.
	Exec(query string, args ...any) (int64, error)
	// Row reads the first row of a query into dest: *int64, *string, *[]byte or
	// *bool; NULL is read as their zero value. It returns false where there is none.
	Row(dest []any, query string, args ...any) (bool, error)
	// Rows calls each for every row of a query; each scans and may not use tx.
	Rows(each func(scan func(dest ...any) error) error, query string, args ...any) error
	// ForUpdate is what a SELECT ends in to keep its rows from being changed by
	// others until the transaction ends: empty where nobody else can write.
	ForUpdate() string
}
