package storage

import (
	"context"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/wake"
)

// DB is an engine with the settings of this node.
type DB struct {
	Engine Engine
	Node   string        // names this process among those that share the store
	Lease  time.Duration // of a claim that is not renewed; 0: the engine admits one process at a time
	Now    func() time.Time
	// Shows reports whether the state post of a run shows some messages of an agent to the people of a
	// workspace; nil if there are no such posts.
	Shows func(workspace, agent, messages string) bool
	// Rows returns the kinds of rows of the runs of a workspace; nil if they have none but their answers.
	Rows func(workspace string) []string

	// followers are the readers that wait for changes, by the words that tell other nodes of a change.
	followers wake.Group[string]
}

// Erased notes that a committed transaction has removed words of people; see Eraser.
func (db *DB) Erased() {
	if eraser, ok := db.Engine.(Eraser); ok {
		eraser.Erased()
	}
}

// Txn is a transaction that the first error ends: no statement runs after it, each
// further call returns zero values, and the transaction fails with that error. So a
// function need not check the error of each statement. It must not use a result outside
// the transaction, because it cannot distinguish a missing row from an error.
type Txn struct {
	engine Tx
	Err    error // the first one
}

// Fail ends the transaction with err, unless it is nil or another error came first.
func (tx *Txn) Fail(err error) {
	if tx.Err == nil {
		tx.Err = err
	}
}

// Row reads the first row of a query into dest; it returns false if there is none.
func (tx *Txn) Row(dest []any, query string, args ...any) (found bool) {
	if tx.Err == nil {
		found, tx.Err = tx.engine.Row(dest, query, args...)
	}
	return found && tx.Err == nil
}

// Has reports whether a query, which begins with SELECT 1, has a row.
func (tx *Txn) Has(query string, args ...any) bool {
	return tx.Row([]any{new(int64)}, query, args...)
}

// Exec runs a statement and returns the number of rows that it changed.
func (tx *Txn) Exec(query string, args ...any) (changed int64) {
	if tx.Err == nil {
		changed, tx.Err = tx.engine.Exec(query, args...)
	}
	return changed
}

// Do runs a statement whose result is not needed.
func (tx *Txn) Do(query string, args ...any) { tx.Later(nil, nil, query, args...) }

// Must runs a statement that must change a row; otherwise the transaction fails with
// none.
func (tx *Txn) Must(none error, query string, args ...any) { tx.Later(none, nil, query, args...) }

// Later runs a statement whose first row is needed only later; see Tx.Later.
func (tx *Txn) Later(none error, dest []any, query string, args ...any) {
	if tx.Err == nil {
		tx.Err = tx.engine.Later(none, dest, query, args...)
	}
}

// manyRows is the number of rows for which Rows makes room in a list that has more than two.
const manyRows = 20

// Rows reads all rows of a query; dest returns the variables for one row. Every row is
// scanned into the same variables, and then copied.
func Rows[T any](tx *Txn, dest func(row *T) []any, query string, args ...any) (list []T) {
	if tx.Err == nil {
		var row T
		into := dest(&row)
		tx.Err = tx.engine.Rows(func(scan func(...any) error) error {
			if len(list) == 2 { // most lists have at most two rows, and many others a page
				list = slices.Grow(list, manyRows)
			}
			err := scan(into...)
			list = append(list, row)
			return err
		}, query, args...)
	}
	return list
}

// Self is the dest of Rows for a query with one column.
func Self[T any](row *T) []any { return []any{row} }

// sticky returns the function of an engine's transaction that runs fn and returns the first
// error.
func sticky(fn func(tx *Txn)) func(Tx) error {
	return func(engine Tx) error {
		tx := &Txn{engine: engine}
		fn(tx)
		return tx.Err
	}
}

// Write runs fn in a transaction and returns its result after that is durable. If the
// transaction failed or its outcome is unknown, Write does not read fn's result, because
// fn may still run.
func Write[T any](ctx context.Context, db *DB, options WriteOptions, fn func(tx *Txn) T) (T, error) {
	return WriteThen(ctx, db, options, fn, nil)
}

// WriteThen is Write that also passes the result to committed, as WriteOptions.Committed; nil for
// nothing.
func WriteThen[T any](ctx context.Context, db *DB, options WriteOptions, fn func(tx *Txn) T, committed func(T)) (T, error) {
	made := new(T)
	if committed != nil {
		options.Committed = func() { committed(*made) }
	}
	if err := db.Engine.Write(ctx, options, sticky(func(tx *Txn) { *made = fn(tx) })); err != nil {
		return *new(T), err
	}
	return *made, nil
}

// Change is Write for a function without a result. key is the key of the thread whose row
// fn locks; empty for none.
func (db *DB) Change(ctx context.Context, key event.ThreadKey, fn func(tx *Txn)) error {
	return db.Engine.Write(ctx, WriteOptions{Thread: key}, sticky(fn))
}

// Read runs fn on a snapshot and returns its result.
func Read[T any](ctx context.Context, db *DB, fn func(tx *Txn) T) (made T, err error) {
	err = db.Engine.Read(ctx, sticky(func(tx *Txn) { made = fn(tx) }))
	return made, err
}

// ReadRecent is Read for few rows, of which most were written a moment ago. An embedded
// store reads them fastest on its writing connection, because each commit empties the page
// caches of all others. Writes wait for fn.
func ReadRecent[T any](ctx context.Context, db *DB, fn func(tx *Txn) T) (T, error) {
	if db.Lease == 0 {
		return Write(ctx, db, WriteOptions{}, fn)
	}
	return Read(ctx, db, fn)
}

// ReadOne is Read for a function that runs one query.
func ReadOne[T any](ctx context.Context, db *DB, fn func(tx *Txn) T) (made T, err error) {
	err = db.Engine.ReadOne(ctx, sticky(func(tx *Txn) { made = fn(tx) }))
	return made, err
}

// Row is Txn.Row for a single query.
func (db *DB) Row(ctx context.Context, dest []any, query string, args ...any) (found bool, err error) {
	return ReadOne(ctx, db, func(tx *Txn) bool { return tx.Row(dest, query, args...) })
}

// One is Row for a row that must exist; otherwise it returns ErrNotFound.
func (db *DB) One(ctx context.Context, dest []any, query string, args ...any) error {
	found, err := db.Row(ctx, dest, query, args...)
	if err == nil && !found {
		err = ErrNotFound
	}
	return err
}

// List is Rows for a single query.
func List[T any](ctx context.Context, db *DB, dest func(row *T) []any, query string, args ...any) ([]T, error) {
	return ReadOne(ctx, db, func(tx *Txn) []T { return Rows(tx, dest, query, args...) })
}
