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
	statements map[string]statement
	args       []driver.Value // reused by each statement
}

// statement is a prepared statement. The engine uses its methods without a context:
// with a context, the driver starts a goroutine for each statement, and a cancelled write
// leaves its transaction in an unknown state.
type statement struct {
	driver.Stmt
	// verb is its first word, in capitals.
	verb string
}

// connect opens path through the named VFS (empty: the system's) and runs the
// given pragmas, such as "synchronous=FULL".
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
	c := &conn{raw: raw, statements: map[string]statement{}}
	for _, pragma := range pragmas {
		if err := c.run("PRAGMA " + pragma); err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: set %s: %w", path, pragma, err), c.close())
		}
	}
	return c, nil
}

func firstWord(query string) string {
	words := strings.FieldsFunc(query, func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) == 0 {
		return ""
	}
	return strings.ToUpper(words[0])
}

// selects says that the statement changes nothing.
func (s statement) selects() bool { return s.verb == "SELECT" }

// counted says that the number of changed rows tells whether it changed anything.
func (s statement) counted() bool {
	return s.verb == "INSERT" || s.verb == "UPDATE" || s.verb == "DELETE"
}

// shared says that it may run in a transaction that others share: it neither
// ends that nor changes the connection.
func (s statement) shared() bool { return s.selects() || s.counted() || s.verb == "WITH" }

// statement returns the prepared statement for query, from the cache if it can.
func (c *conn) statement(query string) (statement, error) {
	if s, ok := c.statements[query]; ok {
		return s, nil
	}
	if len(c.statements) >= maxStatements {
		if err := c.forget(); err != nil {
			return statement{}, err
		}
	}
	raw, err := c.raw.Prepare(unlocked.Replace(query))
	if err != nil {
		return statement{}, err
	}
	s := statement{raw, firstWord(query)}
	c.statements[query] = s
	return s, nil
}

// unlocked takes away what keeps rows from other writers: here is only one.
var unlocked = strings.NewReplacer(" FOR UPDATE SKIP LOCKED", "", " FOR UPDATE", "")

// forget closes every prepared statement.
func (c *conn) forget() error {
	var errs []error
	for query, s := range c.statements {
		errs = append(errs, s.Close())
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
	_, err = s.Exec(c.bind(args))
	return err
}

// row reads the first row of a query of the engine's own; false if there is none.
func (c *conn) row(dest []any, query string, args ...any) (found bool, err error) {
	s, err := c.statement(query)
	if err != nil {
		return false, err
	}
	failed, err := c.each(s, c.bind(args), func(values []driver.Value) error {
		if found {
			return nil
		}
		found = true
		return scan(values, dest)
	})
	return found, errors.Join(failed, err)
}

// each calls visit for every row of a statement, which is always run to its end:
// one that writes and returns rows has done all its work only then. An error of
// visit ends a SELECT early; failed is that error, and err one of the driver.
func (c *conn) each(s statement, args []driver.Value, visit func([]driver.Value) error) (failed, err error) {
	rows, err := s.Query(args)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := rows.Close(); err == nil { // it repeats the error of a failed step
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

// bind turns args into the driver's form, in a buffer that the next call reuses.
func (c *conn) bind(args []any) []driver.Value {
	c.args = c.args[:0]
	for _, arg := range args {
		c.args = append(c.args, arg)
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
