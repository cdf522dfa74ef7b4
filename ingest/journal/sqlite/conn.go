package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	sqlite "modernc.org/sqlite"

	"parley/ingest/event"
)

// conn is one connection to the database. It belongs to one goroutine at a time. It keeps
// every prepared statement: no query is built for a single call.
//
// It uses the driver directly, not database/sql, whose pool, locks and conversions would
// cost more than most statements of the journal.
type conn struct {
	raw        driver.Conn
	statements map[string]statement
	args       []driver.NamedValue // reused by each statement
}

// statement is a prepared statement. The engine passes it the background context only: with
// one that can end, the driver starts a goroutine for each statement, and a cancelled write
// leaves its transaction in an unknown state.
type statement struct {
	prepared
	// verb is the first word. Only capitals are recognised.
	verb string
}

// prepared is the part of the driver's statement that takes arguments without copying them.
type prepared interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// connect opens path through the named VFS (empty: the system's) and runs the
// given pragmas, such as "synchronous=FULL".
func connect(ctx context.Context, path, vfs string, pragmas ...string) (*conn, error) {
	return connectAs(ctx, path, vfs, "", pragmas...)
}

// connectAs is connect in a form: a parameter of SQLite's address, such as readOnly; empty for none.
func connectAs(ctx context.Context, path, vfs, form string, pragmas ...string) (*conn, error) {
	query := url.Values{}
	if name, value, ok := strings.Cut(form, "="); ok {
		query.Set(name, value)
	}
	if vfs != "" {
		query.Set("vfs", vfs)
	}
	connector, err := sqlite.NewConnector("file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	c := &conn{raw: raw, statements: map[string]statement{}}
	for _, pragma := range pragmas {
		if err := c.run("PRAGMA " + pragma); err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: set %s: %w", path, pragma, err), c.close())
		}
	}
	return c, nil
}

// selects reports whether the statement changes nothing.
func (s statement) selects() bool { return s.verb == "SELECT" }

// counted reports whether the number of changed rows shows if the statement changed
// anything.
func (s statement) counted() bool {
	return s.verb == "INSERT" || s.verb == "UPDATE" || s.verb == "DELETE"
}

// shared reports whether the statement may run in a shared transaction: it neither ends
// the transaction nor changes the connection.
func (s statement) shared() bool { return s.selects() || s.counted() || s.verb == "WITH" }

// statement returns the prepared statement for query, from the cache if possible.
func (c *conn) statement(query string) (statement, error) {
	if s, ok := c.statements[query]; ok {
		return s, nil
	}
	verb := strings.Fields(query)[0]
	raw, err := c.raw.Prepare(strings.Replace(unlocked.Replace(query), verb, verb+onConflict[verb], 1))
	if err != nil {
		return statement{}, err
	}
	s := statement{raw.(prepared), verb}
	c.statements[query] = s
	return s, nil
}

// unlocked removes the clause that locks rows against other writers, because this engine
// has only one.
var unlocked = strings.NewReplacer(" FOR UPDATE SKIP LOCKED", "", " FOR UPDATE", "")

// onConflict is the clause that follows a verb. Without it, SQLite copies each page before
// a statement changes it, to undo that statement alone if it violates a constraint. The
// copies are useless here, because the committer then rolls back the whole transaction.
var onConflict = map[string]string{"INSERT": " OR FAIL", "UPDATE": " OR FAIL"}

// run executes a statement of the engine itself.
func (c *conn) run(query string, args ...any) error {
	s, err := c.statement(query)
	if err != nil {
		return err
	}
	_, err = s.ExecContext(context.Background(), c.bind(args))
	return err
}

// row reads the first row of a query of the engine itself, which has one.
func (c *conn) row(dest []any, query string) error {
	s, err := c.statement(query)
	if err != nil {
		return err
	}
	failed, err := c.each(s, nil, first(dest, new(bool)))
	return errors.Join(failed, err)
}

// first returns a visit of each that scans the first row into dest and sets found.
func first(dest []any, found *bool) func([]driver.Value) error {
	return func(values []driver.Value) error {
		if *found {
			return nil
		}
		*found = true
		return scan(values, dest)
	}
}

// each calls visit for every row of a statement. It always runs the statement to the end,
// because a statement that writes and returns rows is complete only then. An error of
// visit ends a SELECT early. failed is that error, and err an error of the driver.
func (c *conn) each(s statement, args []driver.NamedValue, visit func([]driver.Value) error) (failed, err error) {
	rows, err := s.QueryContext(context.Background(), args)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := rows.Close(); err == nil { // Close repeats the error of a failed step
			err = closing
		}
	}()
	values := make([]driver.Value, len(rows.Columns()))
	for failed == nil || !s.selects() {
		if err := rows.Next(values); err == io.EOF {
			break
		} else if err != nil {
			return failed, err
		}
		if failed == nil {
			failed = visit(values)
		}
	}
	return failed, nil
}

// bind converts args to the driver's form, in a buffer that the next call reuses.
func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, arg := range args {
		if text, ok := arg.(string); ok && event.Text(text) != text {
			arg = event.Text(text)
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return c.args
}

// clean rolls back any open transaction. It returns false if a transaction may still be
// open: the caller must then close the connection.
func (c *conn) clean() bool {
	return c.run("ROLLBACK") == nil || c.idle()
}

// idle returns true only if no transaction is open: inside one, BEGIN fails and changes
// nothing.
func (c *conn) idle() bool {
	return c.run("BEGIN") == nil && c.run("ROLLBACK") == nil
}

// written returns how many pages went to the log since the last call.
func (c *conn) written() int {
	pages, _, err := c.raw.(sqlite.DBStatus).Status(sqlite.DBStatusCacheWrite, true)
	if err != nil {
		return 0
	}
	return pages
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.statements {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.raw.Close())...)
}
