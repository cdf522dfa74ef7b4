package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"parley/ingest/journal"
)

var _ journal.Tx = (*tx)(nil)

// tx is what one function sees of the transaction that it shares.
type tx struct {
	conn *conn
	// wrote says that the transaction may hold something of this function.
	wrote bool
	// bytes is the size of what it bound.
	bytes int
	// dead is why no statement may run any more. Most errors of SQLite can have
	// rolled the transaction back, and what ran after that would commit by itself.
	dead error
	// iterating says that Rows is calling back.
	iterating bool
}

// Exec implements journal.Tx.
func (t *tx) Exec(query string, args ...any) (int64, error) {
	s, named, err := t.prepare(query, args)
	if err != nil {
		return 0, err
	}
	result, err := s.exec(named)
	if err != nil {
		return 0, t.failed(query, s, err)
	}
	n, err := result.RowsAffected()
	t.wrote = t.wrote || n > 0 || !s.counted()
	return n, err
}

// Row implements journal.Tx.
func (t *tx) Row(dest []any, query string, args ...any) (found bool, err error) {
	err = t.visit(query, args, func(values []driver.Value) error {
		if found {
			return nil
		}
		found = true
		return scan(values, dest)
	})
	return found, err
}

// Rows implements journal.Tx.
func (t *tx) Rows(each func(scan func(dest ...any) error) error, query string, args ...any) error {
	return t.visit(query, args, func(values []driver.Value) error {
		t.iterating = true
		defer func() { t.iterating = false }()
		return each(func(dest ...any) error { return scan(values, dest) })
	})
}

// Later implements journal.Tx. Nothing is gained by waiting: it runs at once.
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

// errVisit carries an error of the caller's function through the driver's loop.
type errVisit struct{ error }

func (t *tx) visit(query string, args []any, visit func([]driver.Value) error) error {
	s, named, err := t.prepare(query, args)
	if err != nil {
		return err
	}
	t.wrote = t.wrote || !s.selects()
	err = t.conn.each(s, named, func(values []driver.Value) error {
		if err := visit(values); err != nil {
			return errVisit{err}
		}
		return nil
	})
	var own errVisit
	if errors.As(err, &own) {
		return own.error
	}
	if err != nil {
		return t.failed(query, s, err)
	}
	return nil
}

func (t *tx) prepare(query string, args []any) (*statement, []driver.NamedValue, error) {
	if t.dead != nil {
		return nil, nil, t.dead
	}
	if t.iterating {
		return nil, nil, errors.New("the transaction is used inside Rows")
	}
	for _, arg := range args {
		switch arg := arg.(type) {
		case string:
			t.bytes += len(arg)
		case []byte:
			t.bytes += len(arg)
		}
	}
	s, err := t.conn.statement(query)
	if err != nil {
		return nil, nil, t.failed(query, nil, err)
	}
	if !s.shared() {
		return nil, nil, fmt.Errorf("%s: only SELECT, INSERT, UPDATE, DELETE and WITH may run in a transaction", shown(query))
	}
	return s, t.conn.bind(args), nil
}

// failed says what an error of the driver means for the transaction. A violated
// constraint leaves it open, unless the schema says otherwise.
func (t *tx) failed(query string, s *statement, err error) error {
	err = fmt.Errorf("%s: %w", shown(query), err)
	t.wrote = t.wrote || s == nil || !s.selects()
	if !isConstraint(err) || t.conn.idle() {
		err = unavailable(err)
		t.dead = err
	}
	return err
}
