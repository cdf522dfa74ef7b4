package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley/ingest/journal"
)

// answerWithin bounds the whole of one transaction: a server that is gone without
// a word is given up then.
const answerWithin = 30 * time.Second

// How transactions begin. The words do not depend on the server's defaults.
const (
	beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	beginRead  = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
)

// conn is a pooled connection with the statements that are prepared on it.
type conn struct {
	pooled     *pgxpool.Conn
	raw        *pgconn.PgConn
	statements *statements
}

// statementsKey is where a connection's statements stand in its custom data.
const statementsKey = "parley.statements"

// acquire takes a connection from the pool, or opens one.
func (e *Engine) acquire(ctx context.Context) (*conn, error) {
	pooled, err := e.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &conn{pooled: pooled, raw: pooled.Conn().PgConn()}
	data := c.raw.CustomData()
	known, ok := data[statementsKey].(*statements)
	if !ok {
		known = &statements{known: map[statementKey]*statement{}}
		data[statementsKey] = known
	}
	c.statements = known
	return c, nil
}

// release gives the connection back. One that is of no use any more is closed.
func (c *conn) release(ctx context.Context, err error) {
	if isBroken(err) || outdated(err) || c.raw.TxStatus() != 'I' {
		_ = c.raw.Close(ctx) // it is given up because it is broken
	}
	c.pooled.Release()
}

// transact runs fn in a transaction on the connection. unclear says that nobody
// knows whether it was committed.
func (c *conn) transact(ctx context.Context, begin string, fn func(journal.Tx) error) (unclear bool, err error) {
	if err := c.raw.Conn().SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return false, brokenError{err}
	}
	t := start(ctx, c, begin)
	failed := fn(t)
	if failed == nil {
		failed = t.settle()
	}
	if t.dead != nil && !errors.Is(failed, t.dead) {
		failed = t.dead
	}
	if failed != nil {
		err = t.rollback()
	} else {
		unclear, err = t.commit()
	}
	if err == nil {
		err = c.raw.Conn().SetDeadline(time.Time{}) // it may wait in the pool for as long as it likes
	}
	if failed != nil {
		err = failed
	}
	return unclear, err
}
