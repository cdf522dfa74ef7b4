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

// serve runs the calls of Write that wait, one after another, until quit is
// closed. Several go on side by side.
func (e *Engine) serve(ctx context.Context) {
	for c := e.queue.Next(e.quit); c != nil; c = e.queue.Next(e.quit) {
		if c.Take() {
			e.write(ctx, c)
		}
	}
}

// write runs one call, again where that can help: it lost a race, or its
// connection broke before COMMIT was sent.
func (e *Engine) write(ctx context.Context, c *queue.Call) {
	begun := time.Now()
	for races := 0; ; {
		unclear, err := e.transact(ctx, c)
		switch {
		case unclear:
			c.Answer(fmt.Errorf("%w: %w: %w", journal.ErrUnclear, journal.ErrUnavailable, err))
			return
		case raced(err) && races < maxRaces:
			races++
		case err != nil && (isBroken(err) || outdated(err)) && time.Since(begun) < waitOut && e.pause(err):
		default:
			c.Answer(unavailable(err))
			return
		}
		c.Release()
		if !c.Take() {
			return
		}
	}
}

// pause waits before another try; false where the engine is being closed.
func (e *Engine) pause(err error) bool {
	var unreachable connectError
	if !errors.As(err, &unreachable) {
		return true // only this connection was lost
	}
	select {
	case <-time.After(betweenTries):
		return true
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
		return false, brokenError{connectError{err}}
	}
	var begun time.Time
	unclear, err = c.transact(ctx, beginWrite, func(t journal.Tx) error {
		err := call.Run(t)
		begun = time.Now()
		return err
	})
	if err == nil {
		e.recorder.Committed(1, time.Since(begun))
	}
	c.release(ctx, err)
	return unclear, err
}

// Read implements journal.Engine.
func (e *Engine) Read(ctx context.Context, fn func(tx journal.Tx) error) error {
	if !e.enter() {
		return journal.ErrClosed
	}
	defer e.calls.Done()
	for begun := time.Now(); ; {
		err := e.read(ctx, fn)
		if err == nil || !isBroken(err) && !outdated(err) || ctx.Err() != nil || time.Since(begun) >= waitOut || !e.pause(err) {
			return unavailable(err)
		}
	}
}

func (e *Engine) read(ctx context.Context, fn func(tx journal.Tx) error) error {
	c, err := e.acquire(ctx)
	if err != nil {
		return brokenError{connectError{err}}
	}
	ctx = context.WithoutCancel(ctx)
	_, err = c.transact(ctx, beginRead, fn)
	c.release(ctx, err)
	return err
}
