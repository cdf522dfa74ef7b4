// Package journal stores envelopes, messages, runs and deliveries durably, in
// order, each once.
//
// The logic is plain SQL that every engine understands and stands here once; an
// engine (package sqlite) knows how to open a database, bring its schema up to
// date, and commit.
package journal

import "context"

// Engine is a database as the journal uses it. Queries are written with ? for
// their arguments, which are int64, string, []byte or nil.
type Engine interface {
	// Write runs fn in a transaction and returns once that is durable: an error
	// means that nothing of fn has happened, with the exception of ErrUnclear.
	// Other callers' functions may share the transaction, and fn may be run
	// again after a failure that was not its own: it must do nothing but use tx
	// and set variables of its caller. ctx bounds the wait for a place in a
	// transaction, never the transaction itself.
	Write(ctx context.Context, fn func(tx Tx) error) error
	// Read runs fn on a snapshot.
	Read(ctx context.Context, fn func(tx Tx) error) error
	// Close ends the engine; calls under way are finished first.
	Close() error
}

// Tx is what a function may do inside a transaction.
type Tx interface {
	// Exec runs a statement and returns how many rows it changed.
	Exec(query string, args ...any) (int64, error)
	// Row reads the first row of a query into dest: *int64, *string, *[]byte or
	// *bool. It returns false where there is none.
	Row(dest []any, query string, args ...any) (bool, error)
	// Rows calls each for every row of a query; each scans and may not use tx.
	Rows(each func(scan func(dest ...any) error) error, query string, args ...any) error
}
