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
	"time"

	"parley/ingest/event"
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

// patientKey marks a context.
type patientKey struct{}

// patient marks a call of Write that somebody outside is waiting for, while more
// waits than can be worked on soon: it goes on as fast as that work does.
func patient(ctx context.Context) context.Context { return context.WithValue(ctx, patientKey{}, true) }

// IsPatient says whether a call has its share among the others and no precedence.
func IsPatient(ctx context.Context) bool { return ctx.Value(patientKey{}) != nil }

// IsUrgent says whether a call was marked by Urgent.
func IsUrgent(ctx context.Context) bool { return ctx.Value(urgentKey{}) != nil }

// aboutKey marks a context.
type aboutKey struct{}

// about says which thread's row a call of Write locks.
func about(ctx context.Context, thread event.ThreadKey) context.Context {
	if thread == "" {
		return ctx
	}
	return context.WithValue(ctx, aboutKey{}, thread)
}

// About is the key of the thread whose row a call of Write locks; empty where it is
// not known, or there is none. Calls about one thread can't go on side by side.
func About(ctx context.Context) event.ThreadKey {
	thread, _ := ctx.Value(aboutKey{}).(event.ThreadKey)
	return thread
}

// singleKey marks a context.
type singleKey struct{}

// single marks a call of Read whose function runs one query.
func single(ctx context.Context) context.Context { return context.WithValue(ctx, singleKey{}, true) }

// IsSingle says that the function of a call of Read runs one query, and so needs
// no transaction to see one state.
func IsSingle(ctx context.Context) bool { return ctx.Value(singleKey{}) != nil }

// Engine is a database as the journal uses it. Queries are written in the SQL
// that SQLite and PostgreSQL share, with ? or ?1, ?2 … for their arguments, which
// are int64, string, []byte or nil. A SELECT may end in FOR UPDATE, or FOR UPDATE
// SKIP LOCKED, which an engine with one writer leaves out. A bound LIMIT is written
// CAST(? AS BIGINT): SQLite plans a statement anew each time that a bare one is bound.
type Engine interface {
	// Write runs fn in a transaction and returns once that is durable: an error
	// means that nothing of fn has happened, with the exception of ErrUnclear.
	// Other callers' functions may share the transaction or go on beside it (READ
	// COMMITTED: what must not change meanwhile is locked by FOR UPDATE), and fn may
	// be run again after a failure that was not its own: it must do nothing but use
	// tx and set variables of its caller, and must set them anew in each run. A
	// panic in fn is returned as an error.
	//
	// ctx bounds the wait, never the transaction. A call whose ctx ends before fn
	// was begun is withdrawn: fn never runs, and the error wraps ctx's. Where it
	// ends later the error wraps ErrUnclear as well.
	Write(ctx context.Context, fn func(tx Tx) error) error
	// Read runs fn on a snapshot: all its queries see the same state, which
	// holds everything that Write had returned for before. As with Write, fn may be
	// run again. ctx bounds the wait for a connection.
	Read(ctx context.Context, fn func(tx Tx) error) error
	// Close ends the engine; calls under way are finished first.
	Close() error
}

// Tx is what a function may do inside a transaction. After an error, other than
// one of its own, the function returns it: the transaction may be lost.
type Tx interface {
	// Exec runs a statement and returns how many rows it changed.
	Exec(query string, args ...any) (int64, error)
	// Row reads the first row of a query into dest: *int64, *string, *[]byte or
	// *bool; NULL is read as their zero value. It returns false where there is none.
	Row(dest []any, query string, args ...any) (bool, error)
	// Rows calls each for every row of a query; each scans and may not use tx.
	Rows(each func(scan func(dest ...any) error) error, query string, args ...any) error
	// Later runs a statement whose result the function can go on without: an
	// engine may send it together with what follows, in the order of the calls.
	// Its first row, if there is one, has been read into dest when the next Exec,
	// Row or Rows returns, or else when the transaction has ended. Where none is
	// not nil and no row is found or changed, the transaction fails with it, if not
	// here then then.
	Later(none error, dest []any, query string, args ...any) error
}

// Clock is an engine whose database several nodes share, and with it the time.
type Clock interface {
	// Now is the database's time, as well as this node can tell.
	Now() time.Time
}

// Bell is an engine that carries short messages between nodes. They may be lost,
// and only spare a look into the store.
type Bell interface {
	// Ring sends words to a node, or to all where that is empty, soon and
	// together with others; it never waits. Nothing is sent of a message that is
	// longer than 1 KiB.
	Ring(node, words string)
	// Listen hears what is sent to this node, until ctx ends. It calls missed
	// whenever messages may have been lost: at first, and after each break.
	Listen(ctx context.Context, node string, heard func(words string), missed func()) error
}
