package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

var _ storage.Tx = (*tx)(nil)

// The statements that begin a transaction. They do not depend on the server's defaults.
const (
	beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	beginRead  = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
)

// idle is the status of a connection outside of transactions.
const idle = 'I'

// tx is a transaction on one connection. It queues statements, and sends all of them
// in one round trip when the caller needs a result.
type tx struct {
	conn *pgx.Conn
	// send sends a batch on the connection.
	send func(*pgx.Batch) pgx.BatchResults
	// opening is queued before the first statement. It is empty for a single query,
	// which is a transaction by itself.
	opening []string
	// calls counts the calls that queue a statement.
	calls  int
	queued *pgx.Batch
	trips  int // batches that were sent
	// unchecked means that a queued statement must find or change a row.
	unchecked bool
	// err is the error that ended the transaction.
	err error
	// reading means that Rows is calling its function.
	reading bool
}

// statement is an SQL statement and the use of its result.
type statement struct {
	query string
	// row is called for each row until it returns false; nil ignores the rows.
	row func(pgx.Rows) bool
	// tag receives the server's summary; nil ignores it.
	tag *pgconn.CommandTag
	// none ends the transaction if the statement finds or changes no row; nil allows that.
	none error
}

// Exec implements storage.Tx.
func (t *tx) Exec(query string, args ...any) (int64, error) {
	var tag pgconn.CommandTag
	err := t.run(statement{query: query, tag: &tag}, args)
	return tag.RowsAffected(), err
}

// Row implements storage.Tx.
func (t *tx) Row(dest []any, query string, args ...any) (bool, error) {
	var tag pgconn.CommandTag
	err := t.run(statement{query: query, row: t.into(dest), tag: &tag}, args)
	return tag.RowsAffected() > 0, err
}

// Rows implements storage.Tx.
func (t *tx) Rows(each func(scan func(dest ...any) error) error, query string, args ...any) error {
	var failed error
	err := t.run(statement{query: query, row: func(rows pgx.Rows) bool {
		t.reading = true
		defer func() { t.reading = false }()
		failed = each(func(dest ...any) error { return scan(t.conn.TypeMap(), rows, dest) })
		return failed == nil
	}}, args)
	if err != nil {
		return err
	}
	return failed
}

// Later implements storage.Tx.
func (t *tx) Later(none error, dest []any, query string, args ...any) error {
	return t.queue(statement{query: query, row: t.into(dest), none: none}, args)
}

// into returns a function that scans the first row into dest.
func (t *tx) into(dest []any) func(pgx.Rows) bool {
	if dest == nil {
		return nil
	}
	return func(rows pgx.Rows) bool {
		t.fail(scan(t.conn.TypeMap(), rows, dest))
		return false
	}
}

// run queues a statement, sends the batch and reads its results.
func (t *tx) run(s statement, args []any) error {
	if err := t.queue(s, args); err != nil {
		return err
	}
	return t.flush()
}

// queue adds a statement to the batch, after the opening statements if it is the first.
func (t *tx) queue(s statement, args []any) error {
	t.calls++
	switch {
	case t.err != nil:
		return t.err
	case t.reading:
		return errors.New("the transaction is used inside Rows")
	}
	if t.calls == 1 {
		for _, query := range t.opening {
			t.add(statement{query: query}, nil)
		}
	}
	t.add(s, args)
	return nil
}

func (t *tx) add(s statement, args []any) {
	t.unchecked = t.unchecked || s.none != nil
	t.queued.Queue(s.query, storableArgs(args)...).Query(func(rows pgx.Rows) error {
		for s.row != nil && rows.Next() && s.row(rows) {
		}
		rows.Close() // skips the other rows
		if err := rows.Err(); err != nil {
			return fmt.Errorf("%.60s: %w", shown(s.query), err)
		}
		if s.tag != nil {
			*s.tag = rows.CommandTag()
		}
		if rows.CommandTag().RowsAffected() == 0 {
			t.fail(s.none)
		}
		return nil
	})
}

// Tables implements storage.Tx.
func (t *tx) Tables() ([]storage.Table, error) {
	return schema.ReadTables(t, `SELECT CAST(k.relname AS TEXT), CAST(a.attname AS TEXT),
			CASE format_type(a.atttypid, NULL) WHEN 'bigint' THEN 'INTEGER' WHEN 'text' THEN 'TEXT' WHEN 'bytea' THEN 'BLOB' ELSE format_type(a.atttypid, NULL) END,
			NOT a.attnotnull, i.indrelid IS NOT NULL
		FROM pg_class k JOIN pg_attribute a ON a.attrelid = k.oid
		LEFT JOIN pg_index i ON i.indrelid = k.oid AND i.indisprimary AND a.attnum = ANY (i.indkey)
		WHERE k.relkind = 'r' AND k.relnamespace = CAST(current_schema() AS REGNAMESPACE) AND a.attnum > 0 AND NOT a.attisdropped
		ORDER BY k.relname, i.indrelid IS NULL, array_position(CAST(i.indkey AS INT2[]), a.attnum), a.attnum`)
}

// flush sends the queued statements and reads their results.
func (t *tx) flush() error {
	if t.err != nil || t.queued.Len() == 0 {
		return t.err
	}
	t.trips++
	results := t.send(t.queued)
	t.queued, t.unchecked = &pgx.Batch{}, false
	defer results.Close() // the function of Rows may panic
	err := results.Close()
	if err != nil && t.conn.IsClosed() && !unencodable(err) {
		t.err = broken(err)
	}
	t.fail(err)
	return t.err
}

// fail ends the transaction with err, unless it is nil or another error came first.
func (t *tx) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

// commit makes the transaction durable. COMMIT shares a round trip with the queued
// statements, unless one of them may still end the transaction. The error wraps
// storage.ErrUnclear if the transaction may be committed nevertheless.
func (t *tx) commit() error {
	if t.unchecked {
		_ = t.flush() // t.err has the error
	}
	if t.err != nil || t.calls == 0 {
		return t.err
	}
	var tag pgconn.CommandTag
	err := t.run(statement{query: "COMMIT", tag: &tag}, nil)
	switch {
	case err == nil && tag.String() != "COMMIT": // the server has rolled back a failed transaction
		t.err = fmt.Errorf("COMMIT ended in %s", tag)
		return t.err
	case err != nil && (isBroken(err) || tag.String() == "COMMIT"):
		return fmt.Errorf("%w: %w: %w", storage.ErrUnclear, storage.ErrUnavailable, err)
	}
	return err
}

// end rolls the transaction back if it is not committed, and lifts the connection's
// deadline. A function that kept t cannot use it afterwards.
func (t *tx) end(ctx context.Context) {
	t.err = errEnded
	raw := t.conn.PgConn()
	if !t.conn.IsClosed() && raw.TxStatus() != idle {
		_ = raw.Exec(ctx, "ROLLBACK").Close() // the pool drops a connection that is not idle
	}
	if raw.TxStatus() == idle {
		_ = raw.Conn().SetDeadline(time.Time{}) // fails only on a closed connection
	}
}
