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
	raw        *pgconn.PgConn
	pipe       *pgconn.Pipeline
	statements *statements
	// sent are the statements whose results have not been read.
	sent []awaited
	// opening are the statements that go before the first one; nil once they went,
	// and where there is no BEGIN: the one query is a transaction by itself.
	opening []string
	// begun says that they went.
	begun bool
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
	// found hears whether there was a row; tag, what the server says it has done.
	found *bool
	tag   *pgconn.CommandTag
	// none is what the transaction fails with where there is no row; nil for nothing.
	none error
	// guarded says that the server fails by itself where there is none.
	guarded bool
}

// start returns a transaction that begins with its first statement.
func start(ctx context.Context, c *conn, opening []string) *tx {
	return &tx{raw: c.raw, pipe: c.raw.StartPipeline(ctx), statements: c.statements, opening: opening}
}

// Exec implements journal.Tx.
func (t *tx) Exec(query string, args ...any) (int64, error) {
	var tag pgconn.CommandTag
	err := t.now(awaited{tag: &tag}, query, args)
	return tag.RowsAffected(), err
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
	a := awaited{none: none, guarded: none != nil && guardable(query)}
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
	opening := t.opening
	t.opening, t.begun = nil, t.begun || opening != nil
	for _, words := range opening {
		if err := t.add(awaited{}, words, nil); err != nil {
			return err
		}
	}
	return t.add(a, query, args)
}

func (t *tx) add(a awaited, query string, args []any) error {
	s, err := t.statements.find(query, args, a.guarded)
	if err != nil {
		return fmt.Errorf("%s: %w", shown(query), err)
	}
	a.statement = s
	values := t.statements.bind(args)
	switch {
	case s.name == "":
		t.pipe.SendQueryParams(s.query, values, s.types, binaryFormat, binaryFormat)
	case s.described != nil:
		t.pipe.SendQueryStatement(s.described, values, binaryFormat, binaryFormat)
	default:
		if a.prepares = !s.asked; a.prepares {
			t.pipe.SendPrepare(s.name, s.query, s.types)
			s.asked = true
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
	t.sent = nil
	if err := t.pipe.Sync(); err != nil {
		return t.fail(brokenError{err})
	}
	var own error
	for i := range sent {
		mine, err := t.result(&sent[i])
		if own == nil {
			own = mine
		}
		if err == nil {
			continue
		}
		if t.fail(sent[i].failed(err)); isBroken(t.dead) {
			return t.dead
		}
		if code(err) != "" {
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

// noColumns stands for the columns of a statement that has none: pgconn would have
// each call of it described anew, since it might have some by now.
var noColumns = make([]pgconn.FieldDescription, 1)

// errNothing is what a result is read with that is no row, where there must be one.
var errNothing = errors.New("no row")

// result reads what one statement has brought. own is an error of the function
// for its rows; err, the end of the transaction.
func (t *tx) result(a *awaited) (own, err error) {
	if a.prepares {
		description, err := t.next()
		if err != nil {
			return nil, err
		}
		d, ok := description.(*pgconn.StatementDescription)
		if !ok {
			return nil, brokenError{fmt.Errorf("the server described a statement with %T", description)}
		}
		d.Name = a.statement.name
		if len(d.Fields) == 0 {
			d.Fields = noColumns
		}
		a.statement.described = d // by the server, whatever becomes of the transaction
	}
	result, err := t.next()
	if err != nil {
		return nil, err
	}
	rows, ok := result.(*pgconn.ResultReader)
	if !ok {
		return nil, brokenError{fmt.Errorf("the server answered with %T", result)}
	}
	return a.read(rows)
}

// read goes through a statement's rows.
func (a *awaited) read(rows *pgconn.ResultReader) (own, err error) {
	count := 0
	for rows.NextRow() {
		values := rows.Values()
		if a.guarded {
			values = values[:len(values)-1] // the last is nothingFails'
		}
		if a.each != nil && own == nil {
			own = a.each(rows.FieldDescriptions(), values)
		}
		count++
		if a.found != nil {
			*a.found = true
		}
	}
	tag, err := rows.Close()
	switch {
	case err != nil && code(err) == "":
		return own, brokenError{err}
	case err != nil:
		return own, err
	case a.none != nil && count == 0 && tag.RowsAffected() == 0:
		return own, errNothing
	}
	if a.tag != nil {
		*a.tag = tag
	}
	return own, nil
}

// failed is what an error of a statement means.
func (a *awaited) failed(err error) error {
	switch {
	case err == errNothing, a.guarded && isNothing(err):
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
		if a.none != nil && !a.guarded {
			return t.receive()
		}
	}
	return t.dead
}

// commit makes the transaction durable. unclear says that it may be: the connection
// broke before there was an answer, or what came with it could not be used. An
// error of the server's own, of COMMIT or of what was sent with it, is clear.
func (t *tx) commit() (unclear bool, err error) {
	switch {
	case !t.begun && len(t.sent) > 0:
		return false, t.receive()
	case !t.begun:
		return false, nil
	}
	var tag pgconn.CommandTag
	if err := t.add(awaited{tag: &tag}, "COMMIT", nil); err != nil {
		return false, t.fail(err)
	}
	if err := t.receive(); err != nil {
		return isBroken(err) || t.dead == nil, err
	}
	if tag.String() != "COMMIT" { // the server's word for one that had failed before
		return false, t.fail(fmt.Errorf("COMMIT ended in %s", tag))
	}
	return false, nil
}

// end leaves the connection as it was found, and undoes what was not committed.
// After it, a function that kept t can't use it any more. A connection that does
// not come out of it idle is of no use; the caller of a transaction has its answer.
func (t *tx) end(ctx context.Context) {
	if len(t.sent) > 0 && !isBroken(t.dead) {
		_ = t.receive() // it stands in the connection's buffer, before whatever is sent next
	}
	t.dead, t.opening = errDone, nil
	_ = t.pipe.Close() // reads what a panic has left
	// Not in the pipeline: after a failure, pgconn has lost count of the descriptions there.
	if !t.raw.IsClosed() && t.raw.TxStatus() != idle {
		_ = t.raw.Exec(ctx, "ROLLBACK").Close()
	}
}
