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

const (
	// answerWithin bounds the whole of one transaction: a server that is gone
	// without a word is given up then.
	answerWithin = 30 * time.Second
	// connectWithin bounds the making of a connection, and the look whether one that
	// has rested is still there.
	connectWithin = 5 * time.Second
)

// How transactions begin. The words do not depend on the server's defaults.
const (
	beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	beginRead  = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
)

// idle is a connection's status outside of transactions.
const idle = 'I'

// conn is a pooled connection with the statements that are prepared on it.
type conn struct {
	pooled     *pgxpool.Conn
	raw        *pgconn.PgConn
	statements *statements
	within     time.Duration // bounds a transaction
	// useless says that it must not be used again, although it may look sound.
	useless bool
}

// statementsKey is where a connection's statements stand in its custom data.
const statementsKey = "parley.statements"

// acquire takes a connection from the pool, or opens one. Once the engine is being
// closed, a server that can't be reached is not tried again for each of those who wait.
func (e *Engine) acquire(ctx context.Context) (*conn, error) {
	if e.unreachable.Load() && e.isClosing() {
		return nil, brokenError{connectError{errors.New("connect: the server can't be reached")}}
	}
	pooled, err := e.pool.Acquire(ctx)
	if ctx.Err() == nil {
		e.unreachable.Store(err != nil)
	}
	if err != nil {
		return nil, brokenError{connectError{fmt.Errorf("connect: %w", err)}}
	}
	c := &conn{pooled: pooled, raw: pooled.Conn().PgConn(), within: e.within}
	data := c.raw.CustomData()
	known, ok := data[statementsKey].(*statements)
	if !ok {
		known = newStatements(e.named)
		data[statementsKey] = known
	}
	c.statements = known
	return c, nil
}

// release gives the connection back. One that is of no use any more is closed.
func (c *conn) release(ctx context.Context) {
	if !c.useless && c.raw.TxStatus() == idle {
		c.useless = c.raw.Conn().SetDeadline(time.Time{}) != nil // it may wait for as long as it likes
	}
	if c.useless {
		_ = c.raw.Close(ctx) // it is given up because it is broken
	}
	c.pooled.Release()
}

// transact runs fn in a transaction on the connection. unclear says that nobody
// knows whether it was committed.
func (c *conn) transact(ctx context.Context, opening []string, fn func(journal.Tx) error) (unclear bool, err error) {
	defer func() { c.useless = c.useless || isBroken(err) || outdated(err) }()
	if err := c.raw.Conn().SetDeadline(time.Now().Add(c.within)); err != nil {
		return false, brokenError{err}
	}
	t := start(ctx, c, opening)
	defer t.end(ctx) // also where fn panics
	err = fn(t)
	if err == nil {
		err = t.settle()
	}
	if t.dead != nil && !errors.Is(err, t.dead) {
		err = t.dead
	}
	if err == nil {
		unclear, err = t.commit()
	}
	return unclear, err
}
