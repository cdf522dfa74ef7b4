package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"unicode"

	sqlite "modernc.org/sqlite"
)

// maxStatements bounds the prepared statements of a connection. The journal has
// far fewer; only text that is built for each call could ever reach it.
const maxStatements = 512

// conn is one connection to the database. It belongs to one goroutine at a time.
//
// It stands on the driver itself, not on database/sql: the pool, its locks and
// its conversions would cost more than most statements of the journal.
type conn struct {
	raw        driver.Conn
	prepare    func(query string) (*statement, error)
	statements map[string]*statement
	args       []driver.NamedValue // reused by each statement
}

// statement is a prepared statement.
type statement struct {
	close func() error
	exec  func(args []driver.NamedValue) (driver.Result, error)
	query func(args []driver.NamedValue) (driver.Rows, error)
	// verb is its first word, in capitals.
	verb string
}

// connect opens path through the named VFS (empty: the system's) and runs the
// given pragmas, such as "synchronous=FULL".
//
// Statements run under a context that never ends. With any other the driver
// starts a goroutine for each statement, and one that is cancelled in the middle
// of a write leaves the transaction in a state that nobody knows.
func connect(ctx context.Context, path, vfs string, pragmas ...string) (*conn, error) {
	query := url.Values{}
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
	c := &conn{raw: raw, prepare: preparer(context.WithoutCancel(ctx), raw), statements: map[string]*statement{}}
	for _, pragma := range pragmas {
		if err := c.run("PRAGMA " + pragma); err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: set %s: %w", path, pragma, err), c.close())
		}
	}
	return c, nil
}

// preparer returns what prepares statements that run under ctx.
func preparer(ctx context.Context, raw driver.Conn) func(string) (*statement, error) {
	return func(query string) (*statement, error) {
		s, err := raw.Prepare(query)
		if err != nil {
			return nil, err
		}
		execer, isExecer := s.(driver.StmtExecContext)
		queryer, isQueryer := s.(driver.StmtQueryContext)
		if !isExecer || !isQueryer {
			return nil, errors.Join(errors.New("the driver's statements take no context"), s.Close())
		}
		return &statement{
			close: s.Close,
			exec:  func(args []driver.NamedValue) (driver.Result, error) { return execer.ExecContext(ctx, args) },
			query: func(args []driver.NamedValue) (driver.Rows, error) { return queryer.QueryContext(ctx, args) },
			verb:  firstWord(query),
		}, nil
	}
}

func firstWord(query string) string {
	words := strings.FieldsFunc(query, func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) == 0 {
		return ""
	}
	return strings.ToUpper(words[0])
}

// selects says that the statement changes nothing.
func (s *statement) selects() bool { return s.verb == "SELECT" }

// counted says that the number of changed rows tells whether it changed anything.
func (s *statement) counted() bool {
	return s.verb == "INSERT" || s.verb == "UPDATE" || s.verb == "DELETE"
}

// shared says that it may run in a transaction that others share: it neither
// ends that nor changes the connection.
func (s *statement) shared() bool { return s.selects() || s.counted() || s.verb == "WITH" }

// statement returns the prepared statement for query, from the cache if it can.
func (c *conn) statement(query string) (*statement, error) {
	if s, ok := c.statements[query]; ok {
		return s, nil
	}
	if len(c.statements) >= maxStatements {
		if err := c.forget(); err != nil {
			return nil, err
		}
	}
	s, err := c.prepare(unlocked.Replace(query))
	if err != nil {
		return nil, err
	}
	c.statements[query] = s
	return s, nil
}

// unlocked takes away what keeps rows from other writers: here is only one.
var unlocked = strings.NewReplacer(" FOR UPDATE SKIP LOCKED", "", " FOR UPDATE", "")

// forget closes every prepared statement.
func (c *conn) forget() error {
	var errs []error
	for query, s := range c.statements {
		errs = append(errs, s.close())
		delete(c.statements, query)
	}
	return errors.Join(errs...)
}

// run executes a statement of the engine's own.
func (c *conn) run(query string, args ...any) error {
	s, err := c.statement(query)
	if err != nil {
		return err
	}
	_, err = s.exec(c.bind(args))
	return err
}

// script executes several statements, which are not kept.
func (c *conn) script(text string) error {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	_, err = s.exec(nil)
	return errors.Join(err, s.close())
}

// row reads the first row of a query of the engine's own; false if there is none.
func (c *conn) row(dest []any, query string, args ...any) (found bool, err error) {
	s, err := c.statement(query)
	if err != nil {
		return false, err
	}
	err = c.each(s, c.bind(args), func(values []driver.Value) error {
		if found {
			return nil
		}
		found = true
		return scan(values, dest)
	})
	return found, err
}

// each calls visit for every row of a statement, which is always run to its end:
// one that writes and returns rows has done all its work only then. An error of
// visit ends a SELECT early.
func (c *conn) each(s *statement, args []driver.NamedValue, visit func([]driver.Value) error) (err error) {
	rows, err := s.query(args)
	if err != nil {
		return err
	}
	defer func() {
		if closing := rows.Close(); err == nil { // it repeats the error of a failed step
			err = closing
		}
	}()
	values := make([]driver.Value, len(rows.Columns()))
	var failed error
	for {
		if err := rows.Next(values); err == io.EOF {
			return failed
		} else if err != nil {
			return err
		}
		if failed == nil {
			failed = visit(values)
		}
		if failed != nil && s.selects() {
			return failed
		}
	}
}

// bind turns args into the driver's form, in a buffer that the next call reuses.
func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, arg := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return c.args
}

// clean rolls back whatever transaction is open. false means that it is not
// known whether one still is: the connection must then be given up.
func (c *conn) clean() bool {
	return c.run("ROLLBACK") == nil || c.idle()
}

// idle says for certain that no transaction is open: inside one, BEGIN fails and
// changes nothing.
func (c *conn) idle() bool {
	return c.run("BEGIN") == nil && c.run("ROLLBACK") == nil
}

// written returns how many pages went to the log since the last call.
func (c *conn) written() int {
	status, ok := c.raw.(sqlite.DBStatus)
	if !ok {
		return 0
	}
	pages, _, err := status.Status(sqlite.DBStatusCacheWrite, true)
	if err != nil {
		return 0
	}
	return pages
}

func (c *conn) close() error {
	return errors.Join(c.forget(), c.raw.Close())
}
