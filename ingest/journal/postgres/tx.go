package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"parley/ingest/journal"
)

var _ journal.Tx = (*tx)(nil)

// tx is a transaction on one connection. Statements are sent when the first
// result is asked for, or with COMMIT: what was given to Later before goes along.
type tx struct {
	pipe       *pgconn.Pipeline
	statements *statements
	// sent are the statements whose results have not been read.
	sent []awaited
	// begun says that BEGIN was sent.
	begun bool
	begin string
	// dead is why no statement may run any more.
	dead error
	// iterating says that Rows is calling back.
	iterating bool
}

// awaited is a statement whose result is to come.
type awaited struct {
	statement *statement
	prepares  bool // its description comes first
	// each is called for every row; nil where nobody wants them.
	each func(fields []pgconn.FieldDescription, values [][]byte) error
	// found hears whether there was a row; changed, of how many rows the server told.
	found   *bool
	changed *int64
	// none is what the transaction fails with where there is no row; nil for nothing.
	none error
}

// start returns a transaction that begins with its first statement.
func start(ctx context.Context, c *conn, begin string) *tx {
	return &tx{pipe: c.raw.StartPipeline(ctx), statements: c.statements, begin: begin}
}

// Exec implements journal.Tx.
func (t *tx) Exec(query string, args ...any) (changed int64, err error) {
	err = t.now(awaited{changed: &changed}, query, args)
	return changed, err
}

// Row implements journal.Tx.
func (t *tx) Row(dest []any, query string, args ...any) (found bool, err error) {
	err = t.now(awaited{each: first(dest, &found), found: &found}, query, args)
	return found, err
}

// first scans the first row into dest.
func first(dest []any, found *bool) func([]pgconn.FieldDescription, [][]byte) error {
	return func(fields []pgconn.FieldDescription, values [][]byte) error {
		if *found {
			return nil
		}
		return scan(fields, values, dest)
	}
}

// Rows implements journal.Tx.
func (t *tx) Rows(each func(scan func(dest ...any) error) error, query string, args ...any) error {
	return t.now(awaited{each: func(fields []pgconn.FieldDescription, values [][]byte) error {
		t.iterating = true
		defer func() { t.iterating = false }()
		return each(func(dest ...any) error { return scan(fields, values, dest) })
	}}, query, args)
}

// Later implements journal.Tx.
func (t *tx) Later(none error, dest []any, query string, args ...any) error {
	a := awaited{none: none}
	if dest != nil {
		a.found = new(bool)
		a.each = first(dest, a.found)
	}
	return t.send(a, query, args)
}

// now sends a statement with those before it, and waits for the results.
func (t *tx) now(a awaited, query string, args []any) error {
	if err := t.send(a, query, args); err != nil {
		return err
	}
	return t.receive()
}

// send puts a statement behind those that were sent and not answered.
func (t *tx) send(a awaited, query string, args []any) error {
	switch {
	case t.dead != nil:
		return t.dead
	case t.iterating:
		return errors.New("the transaction is used inside Rows")
	}
	if !t.begun {
		t.begun = true
		if err := t.add(awaited{}, t.begin, nil); err != nil {
			return err
		}
	}
	return t.add(a, query, args)
}

func (t *tx) add(a awaited, query string, args []any) error {
	// A statement without rows of its own can fail in the server where it changes
	// none; any other is looked at before COMMIT is sent.
	guarded := a.none != nil && a.each == nil
	s, err := t.statements.find(query, args, guarded)
	if err != nil {
		return fmt.Errorf("%s: %w", shown(query), err)
	}
	a.statement = s
	values := t.statements.bind(args)
	if s.described != nil {
		t.pipe.SendQueryStatement(s.described, values, binaryFormat, binaryFormat)
	} else {
		if a.prepares = !s.asked; a.prepares {
			t.pipe.SendPrepare(s.name, s.query, s.types)
			s.asked = s.name != ""
		}
		t.pipe.SendQueryPrepared(s.name, values, binaryFormat, binaryFormat)
	}
	t.sent = append(t.sent, a)
	return nil
}

// receive reads the results of everything that was sent. The first failure is
// the transaction's; an error of a caller's own function is only returned.
func (t *tx) receive() error {
	sent := t.sent
	t.sent = t.sent[len(t.sent):]
	if err := t.pipe.Sync(); err != nil {
		return t.fail(brokenError{err})
	}
	var own error
	for i := range sent {
		err := t.result(&sent[i])
		var mine callbackError
		switch {
		case errors.As(err, &mine):
			own = mine.error
		case err != nil:
			if t.fail(sent[i].failed(err)); isBroken(t.dead) {
				return t.dead
			}
		}
		if err != nil && code(err) != "" {
			break // what was sent behind it was not run
		}
	}
	if err := t.synced(); err != nil {
		return t.fail(err)
	}
	for _, a := range sent {
		a.statement.asked = a.statement.described != nil // what stood behind a failure was not prepared
	}
	if t.dead != nil {
		return t.dead
	}
	return own
}

// callbackError is an error of the caller's function for a row.
type callbackError struct{ error }

// result reads what one statement has brought.
func (t *tx) result(a *awaited) error {
	if a.prepares {
		description, err := t.next()
		if err != nil {
			return err
		}
		if d, ok := description.(*pgconn.StatementDescription); ok && a.statement.name != "" {
			d.Name = a.statement.name
			a.statement.described = d // by the server, whatever becomes of the transaction
		}
	}
	result, err := t.next()
	if err != nil {
		return err
	}
	rows, ok := result.(*pgconn.ResultReader)
	if !ok {
		return brokenError{fmt.Errorf("the server answered with %T", result)}
	}
	return a.read(rows)
}

// read goes through a statement's rows.
func (a *awaited) read(rows *pgconn.ResultReader) error {
	var own error
	count := int64(0)
	for rows.NextRow() {
		if a.each != nil && own == nil {
			own = a.each(rows.FieldDescriptions(), rows.Values())
		}
		count++
		if a.found != nil {
			*a.found = true
		}
	}
	tag, err := rows.Close()
	switch {
	case err != nil && code(err) == "":
		return brokenError{err}
	case err != nil:
		return err
	case own != nil:
		return callbackError{own}
	case a.none != nil && count == 0:
		return a.none
	}
	if a.changed != nil {
		*a.changed = tag.RowsAffected()
	}
	return nil
}

// failed is what an error of a statement means.
func (a *awaited) failed(err error) error {
	switch {
	case a.none != nil && (err == a.none || code(err) == divisionByZero):
		return a.none
	case code(err) != "":
		return fmt.Errorf("%s: %w", shown(a.statement.query), err)
	}
	return err
}

// next is the pipeline's next result. An error that is not the server's has
// ended the connection.
func (t *tx) next() (any, error) {
	result, err := t.pipe.GetResults()
	if err != nil && code(err) == "" {
		return nil, brokenError{err}
	}
	if err == nil && result == nil {
		return nil, brokenError{errors.New("the server did not answer")}
	}
	return result, err
}

// synced reads up to the point that the server has confirmed.
func (t *tx) synced() error {
	for {
		result, err := t.next()
		if _, ok := result.(*pgconn.PipelineSync); ok {
			return nil
		}
		if isBroken(err) {
			return err
		}
	}
}

// fail makes err the transaction's end, if it has none.
func (t *tx) fail(err error) error {
	if t.dead == nil || isBroken(err) && !isBroken(t.dead) {
		t.dead = err
	}
	return t.dead
}

// settle sees to it that COMMIT may be sent: a result that is to come, and may
// undo the transaction without the server knowing, is looked at first.
func (t *tx) settle() error {
	for _, a := range t.sent {
		if a.none != nil && a.each != nil {
			return t.receive()
		}
	}
	return t.dead
}

// commit makes the transaction durable. Where the connection breaks in that, nobody
// knows whether it was.
func (t *tx) commit() (unclear bool, err error) {
	err = t.end("COMMIT")
	return isBroken(err), err
}

// rollback undoes the transaction, unless its connection has ended with it.
func (t *tx) rollback() error {
	if isBroken(t.dead) {
		_ = t.pipe.Close() // which only says again that it is broken
		return t.dead
	}
	t.dead = nil
	return t.end("ROLLBACK")
}

// end sends the transaction's last word. After it, a function that kept t can't
// use it any more.
func (t *tx) end(word string) error {
	var err error
	if t.begun {
		if err = t.add(awaited{}, word, nil); err == nil {
			err = t.receive()
		}
	}
	t.dead = errDone
	if closing := t.pipe.Close(); err == nil && closing != nil {
		err = brokenError{closing}
	}
	return err
}
