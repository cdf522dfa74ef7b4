package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/ingest/journal"
	"parley/ingest/journal/internal/queue"
)

const (
	// waitOut is how long a call waits for a server that can't be reached, before
	// its caller hears of it. A caller who waits less is gone by then.
	waitOut = 2 * time.Second
	// betweenTries is the pause before another connection is tried.
	betweenTries = 50 * time.Millisecond
	// maxRaces is how often a call is run again that lost against others.
	maxRaces = 8
)

// serveApart runs calls that could not share a transaction, each in one of its own,
// until quit is closed. Several go on side by side.
func (e *Engine) serveApart(ctx context.Context) {
	for {
		select {
		case c := <-e.apart:
			if c.Take() {
				e.write(ctx, c)
			}
		case <-e.quit:
			return
		}
	}
}

// write runs one call, again where that can help: it lost a race, or its
// connection broke before COMMIT was sent.
func (e *Engine) write(ctx context.Context, c *queue.Call) {
	for t := newTries(); ; {
		unclear, err := e.transact(ctx, c)
		if unclear {
			c.Answer(fmt.Errorf("%w: %w: %w", journal.ErrUnclear, journal.ErrUnavailable, err))
			return
		}
		if !e.again(ctx, t, err) {
			c.Answer(unavailable(err))
			return
		}
		c.Release()
		if !c.Take() {
			return
		}
	}
}

// tries counts how often a call was tried, and since when.
type tries struct {
	begun         time.Time
	races, breaks int
}

func newTries() *tries { return &tries{begun: time.Now()} }

// again says whether a call that ended in err is worth another try, and waits a
// moment where that can't succeed at once. Each connection of the pool may have
// been lost at the same time, so that so many are given up without a pause.
func (e *Engine) again(ctx context.Context, t *tries, err error) bool {
	switch {
	case err == nil:
		return false
	case raced(err):
		t.races++
		return t.races <= maxRaces
	case !isBroken(err) && !outdated(err) || time.Since(t.begun) >= waitOut:
		return false
	}
	t.breaks++
	var unreachable connectError
	if !errors.As(err, &unreachable) && t.breaks <= int(e.pool.Stat().MaxConns()) {
		return true
	}
	select {
	case <-time.After(betweenTries):
		return true
	case <-ctx.Done():
		return false
	case <-e.closing:
		return false
	}
}

// connectError says that no connection could be had.
type connectError struct{ error }

// Unwrap gives the cause.
func (e connectError) Unwrap() error { return e.error }

// transact runs a call in a transaction of its own.
func (e *Engine) transact(ctx context.Context, call *queue.Call) (unclear bool, err error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer c.release(ctx)
	var begun time.Time
	unclear, err = c.transact(ctx, append(e.opening(beginWrite), endless), func(t journal.Tx) error {
		err := call.Run(t)
		begun = time.Now()
		return err
	})
	if err == nil {
		e.recorder.Committed(1, time.Since(begun))
	}
	return unclear, err
}

// Read implements journal.Engine.
func (e *Engine) Read(ctx context.Context, fn func(tx journal.Tx) error) error {
	if !e.calls.Enter() {
		return journal.ErrClosed
	}
	defer e.calls.Leave()
	for t := newTries(); ; {
		err := e.read(ctx, fn)
		if e.again(ctx, t, err) {
			continue
		}
		if isBroken(err) && ctx.Err() != nil {
			err = fmt.Errorf("%w, and then %w", err, context.Cause(ctx))
		}
		return unavailable(err)
	}
}

func (e *Engine) read(ctx context.Context, fn func(tx journal.Tx) error) error {
	c, err := e.acquire(ctx)
	if err != nil {
		return err
	}
	opening := e.opening(beginRead)
	if journal.IsSingle(ctx) {
		opening = nil
	}
	ctx = context.WithoutCancel(ctx)
	defer c.release(ctx)
	_, err = c.transact(ctx, opening, fn)
	return err
}
