package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

var _ storage.Tx = (*tx)(nil)

// tx is one function's view of the transaction that it shares.
type tx struct {
	conn *conn
	// wrote says that the transaction may hold a change of this function, or is lost.
	wrote bool
	// dead is the reason for which no statement may run any more. After most errors,
	// SQLite may have rolled the transaction back; a later statement would commit by
	// itself. After a violated constraint, a part of the statement may be left.
	dead error
	// iterating says that Rows is calling its function.
	iterating bool
}

// Exec implements storage.Tx.
func (t *tx) Exec(query string, args ...any) (int64, error) {
	s, values, err := t.prepare(query, args)
	if err != nil {
		return 0, err
	}
	result, err := s.ExecContext(context.Background(), values)
	if err != nil {
		return 0, t.failed(query, err)
	}
	n, err := result.RowsAffected()
	t.wrote = t.wrote || n > 0 || !s.counted()
	return n, err
}

// Row implements storage.Tx.
func (t *tx) Row(dest []any, query string, args ...any) (found bool, err error) {
	err = t.visit(query, args, first(dest, &found))
	return found, err
}

// Rows implements storage.Tx.
func (t *tx) Rows(each func(scan func(dest ...any) error) error, query string, args ...any) error {
	return t.visit(query, args, func(values []driver.Value) error {
		t.iterating = true
		defer func() { t.iterating = false }()
		return each(func(dest ...any) error { return scan(values, dest) })
	})
}

// Later implements storage.Tx. It runs the statement at once, because SQLite gains
// nothing from a delay.
func (t *tx) Later(none error, dest []any, query string, args ...any) (err error) {
	var changed int64
	var found bool
	if dest == nil {
		changed, err = t.Exec(query, args...)
	} else {
		found, err = t.Row(dest, query, args...)
	}
	if err == nil && !found && changed == 0 {
		return none
	}
	return err
}

// Tables implements storage.Tx.
func (t *tx) Tables() ([]storage.Table, error) {
	return schema.ReadTables(t, `SELECT m.name, c.name, c.type, c."notnull" = 0 AND c.pk = 0, c.pk > 0 FROM sqlite_schema m, pragma_table_info(m.name) c
		WHERE m.type = 'table' ORDER BY m.name, c.pk = 0, c.pk, c.cid`)
}

func (t *tx) visit(query string, args []any, visit func([]driver.Value) error) error {
	s, values, err := t.prepare(query, args)
	if err != nil {
		return err
	}
	t.wrote = t.wrote || !s.selects()
	failed, err := t.conn.each(s, values, visit)
	if err != nil {
		return t.failed(query, err)
	}
	return failed
}

func (t *tx) prepare(query string, args []any) (statement, []driver.NamedValue, error) {
	if t.dead != nil {
		return statement{}, nil, t.dead
	}
	if t.iterating {
		return statement{}, nil, errors.New("the transaction is used inside Rows")
	}
	s, err := t.conn.statement(query)
	if err != nil {
		return statement{}, nil, t.failed(query, err)
	}
	if !s.shared() {
		return statement{}, nil, fmt.Errorf("%.60s: only SELECT, INSERT, UPDATE, DELETE and WITH may run in a transaction", shown(query))
	}
	return s, t.conn.bind(args), nil
}

// failed ends the transaction with an error of the driver. A statement that failed may
// have left a part of its changes.
func (t *tx) failed(query string, err error) error {
	t.dead, t.wrote = unavailable(fmt.Errorf("%.60s: %w", shown(query), err)), true
	return t.dead
}
