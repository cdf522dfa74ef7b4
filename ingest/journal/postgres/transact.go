package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley/ingest/journal/storage"
	"parley/ingest/wake"
)

const (
	// answerWithin bounds a whole transaction. After it, the engine gives up a server
	// that does not answer.
	answerWithin = 30 * time.Second
	// shareWithin bounds a shared transaction, which waits for no other one. A network may
	// drop connections silently. Accepts and renewals of leases wait behind the transaction,
	// and must succeed on a new connection while the leases last.
	shareWithin = 2 * time.Second
	// connectWithin bounds the opening of a connection.
	connectWithin = 5 * time.Second
	// pingWithin bounds the ping of an idle connection.
	pingWithin = time.Second
	// waitOut bounds the retries of a call while the server cannot be reached.
	waitOut = 2 * time.Second
	// betweenTries is the pause after a connection broke or could not be opened.
	betweenTries = 50 * time.Millisecond
	// maxRaces bounds the retries of a call that loses against other transactions.
	maxRaces = 8
)

// Read implements storage.Engine.
func (e *Engine) Read(ctx context.Context, fn func(tx storage.Tx) error) error {
	return e.calls.Do(func() error { return e.read(ctx, e.opening(beginRead), fn) })
}

// ReadOne implements storage.Engine.
func (e *Engine) ReadOne(ctx context.Context, fn func(tx storage.Tx) error) error {
	return e.calls.Do(func() error { return e.read(ctx, nil, fn) })
}

func (e *Engine) read(ctx context.Context, opening []string, fn func(tx storage.Tx) error) error {
	for tries := (tries{began: time.Now()}); ; {
		err := e.transact(ctx, e.within, opening, func(t *tx) error {
			if err := fn(t); err != nil {
				return err
			}
			return t.flush()
		})
		if tries.again(ctx, err) {
			continue
		}
		if isBroken(err) && ctx.Err() != nil {
			err = fmt.Errorf("%w, and then %w", err, context.Cause(ctx))
		}
		return unavailable(err)
	}
}

// write runs fn in a transaction and commits it, within a time. fn returns the number of
// calls that share the transaction.
func (e *Engine) write(ctx context.Context, within time.Duration, opening []string, fn func(t *tx) (calls int, err error)) error {
	return e.transact(ctx, within, opening, func(t *tx) error {
		began := time.Now()
		calls, err := fn(t)
		if err != nil {
			return err
		}
		ready := time.Now()
		if err := t.commit(); err != nil {
			return err
		}
		if calls > 0 && e.recorder != nil {
			e.recorder.Committed(storage.Commit{Calls: calls, Trips: t.trips, Took: time.Since(ready), Held: time.Since(began)})
		}
		return nil
	})
}

// transact runs fn in a transaction on a connection of the pool, and rolls back
// anything that fn did not commit. ctx bounds only the wait for the connection, and within
// the time after it.
func (e *Engine) transact(ctx context.Context, within time.Duration, opening []string, fn func(*tx) error) (err error) {
	c, err := e.pool.Acquire(ctx)
	if err != nil {
		return broken(err)
	}
	defer e.release(c)
	if err := c.Conn().PgConn().Conn().SetDeadline(time.Now().Add(within)); err != nil {
		return broken(err)
	}
	ctx = context.WithoutCancel(ctx)
	send := func(b *pgx.Batch) pgx.BatchResults { return c.SendBatch(ctx, b) }
	t := &tx{conn: c.Conn(), send: send, opening: opening, queued: &pgx.Batch{}}
	defer t.end(ctx) // also if fn panics
	err = fn(t)
	if t.err != nil && !errors.Is(err, t.err) {
		err = t.err
	}
	return err
}

// release gives a connection back to the pool. If the connection broke, the network may have
// dropped the others too: the pool replaces all of them, before the next call gets one.
func (e *Engine) release(c *pgxpool.Conn) {
	if c.Conn().IsClosed() {
		e.pool.Reset()
	}
	c.Release() // the pool drops a connection that is not open and idle
}

// tries counts the failed tries of one call.
type tries struct {
	began time.Time
	races int
}

// again reports whether a call that ended in err should run again. If the connection
// was at fault, it waits a moment first, or until ctx ends.
func (t *tries) again(ctx context.Context, err error) bool {
	switch {
	case err == nil, errors.Is(err, storage.ErrUnclear):
		return false
	case raced(err):
		t.races++
		return t.races <= maxRaces
	case !isBroken(err) || time.Since(t.began) >= waitOut:
		return false
	}
	return wake.After(ctx, betweenTries)
}
