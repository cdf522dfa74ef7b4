package journal

import (
	"context"
	"slices"

	"parley/ingest/event"
)

// txn is a transaction that the first error ends: no statement runs after it, each
// further call returns zero values, and the transaction fails with that error. So a
// function need not check the error of each statement. It must not use a result outside
// the transaction, because it cannot distinguish a missing row from an error.
type txn struct {
	engine Tx
	err    error
}

// fail ends the transaction with err, unless it is nil or another error came first.
func (tx *txn) fail(err error) {
	if tx.err == nil {
		tx.err = err
	}
}

// row reads the first row of a query into dest; it returns false if there is none.
func (tx *txn) row(dest []any, query string, args ...any) (found bool) {
	if tx.err == nil {
		found, tx.err = tx.engine.Row(dest, query, args...)
	}
	return found && tx.err == nil
}

// has reports whether a query, which begins with SELECT 1, has a row.
func (tx *txn) has(query string, args ...any) bool {
	return tx.row([]any{new(int64)}, query, args...)
}

// exec runs a statement and returns the number of rows that it changed.
func (tx *txn) exec(query string, args ...any) (changed int64) {
	if tx.err == nil {
		changed, tx.err = tx.engine.Exec(query, args...)
	}
	return changed
}

// do runs a statement whose result is not needed.
func (tx *txn) do(query string, args ...any) { tx.later(nil, nil, query, args...) }

// must runs a statement that must change a row; otherwise the transaction fails with
// none.
func (tx *txn) must(none error, query string, args ...any) { tx.later(none, nil, query, args...) }

// later runs a statement whose first row is needed only later; see Tx.Later.
func (tx *txn) later(none error, dest []any, query string, args ...any) {
	if tx.err == nil {
		tx.err = tx.engine.Later(none, dest, query, args...)
	}
}

// rows reads all rows of a query; dest returns the variables for one row. Every row is
// scanned into the same variables, and then copied.
func rows[T any](tx *txn, dest func(row *T) []any, query string, args ...any) (list []T) {
	if tx.err == nil {
		var row T
		into := dest(&row)
		tx.err = tx.engine.Rows(func(scan func(...any) error) error {
			if len(list) == 2 { // most lists have at most two rows, and many others a page
				list = slices.Grow(list, 2*turnsPerPage)
			}
			err := scan(into...)
			list = append(list, row)
			return err
		}, query, args...)
	}
	return list
}

// self is the dest of rows for a query with one column.
func self[T any](row *T) []any { return []any{row} }

// sticky returns the function of an engine's transaction that runs fn and returns the first
// error.
func sticky(fn func(tx *txn)) func(Tx) error {
	return func(engine Tx) error {
		tx := &txn{engine: engine}
		fn(tx)
		return tx.err
	}
}

// write runs fn in a transaction and returns its result after that is durable. If the
// transaction failed or its outcome is unknown, write does not read fn's result, because
// fn may still run.
func write[T any](ctx context.Context, j *Journal, options WriteOptions, fn func(tx *txn) T) (T, error) {
	made := new(T)
	if err := j.engine.Write(ctx, options, sticky(func(tx *txn) { *made = fn(tx) })); err != nil {
		return *new(T), err
	}
	return *made, nil
}

// change is write for a function without a result. key is the key of the thread whose row
// fn locks; empty for none.
func (j *Journal) change(ctx context.Context, key event.ThreadKey, fn func(tx *txn)) error {
	return j.engine.Write(ctx, WriteOptions{Thread: key}, sticky(fn))
}

// read runs fn on a snapshot and returns its result.
func read[T any](ctx context.Context, j *Journal, fn func(tx *txn) T) (made T, err error) {
	err = j.engine.Read(ctx, sticky(func(tx *txn) { made = fn(tx) }))
	return made, err
}

// readRecent is read for few rows, of which most were written a moment ago. An embedded
// store reads them fastest on its writing connection, because each commit empties the page
// caches of all others. Writes wait for fn.
func readRecent[T any](ctx context.Context, j *Journal, fn func(tx *txn) T) (T, error) {
	if j.lease == 0 {
		return write(ctx, j, WriteOptions{}, fn)
	}
	return read(ctx, j, fn)
}

// readOne is read for a function that runs one query.
func readOne[T any](ctx context.Context, j *Journal, fn func(tx *txn) T) (made T, err error) {
	err = j.engine.ReadOne(ctx, sticky(func(tx *txn) { made = fn(tx) }))
	return made, err
}

// row is row of a transaction for a single query.
func (j *Journal) row(ctx context.Context, dest []any, query string, args ...any) (found bool, err error) {
	return readOne(ctx, j, func(tx *txn) bool { return tx.row(dest, query, args...) })
}

// one is row for a row that must exist; otherwise it returns ErrNotFound.
func (j *Journal) one(ctx context.Context, dest []any, query string, args ...any) error {
	found, err := j.row(ctx, dest, query, args...)
	if err == nil && !found {
		err = ErrNotFound
	}
	return err
}

// list is rows of a transaction for a single query.
func list[T any](ctx context.Context, j *Journal, dest func(row *T) []any, query string, args ...any) ([]T, error) {
	return readOne(ctx, j, func(tx *txn) []T { return rows(tx, dest, query, args...) })
}
