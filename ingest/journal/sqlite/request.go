package sqlite

import (
	"context"
	"fmt"
	"sync/atomic"

	"parley/ingest/journal"
)

// state is how far a request has come. The caller and the committer both change
// it, each by compare-and-swap, so that both agree on who was first.
type state = int32

const (
	waiting  state = iota // nothing of it has happened; the caller may withdraw it
	running               // in a transaction that is under way
	answered              // the result is there, or about to be
	left                  // the caller has gone
)

// request is one call of Write.
type request struct {
	fn     func(journal.Tx) error
	state  atomic.Int32
	result chan error // holds the answer; never blocks the committer

	err error // what fn returned in the transaction under way; the committer's
}

func newRequest(fn func(journal.Tx) error) *request {
	return &request{fn: fn, result: make(chan error, 1)}
}

// wait returns the answer, or leaves when ctx ends.
func (r *request) wait(ctx context.Context) error {
	select {
	case err := <-r.result:
		return err
	case <-ctx.Done():
	}
	for {
		switch {
		case r.state.CompareAndSwap(waiting, left):
			r.fn = nil // the line may be long, and what it holds large
			return fmt.Errorf("wait to write: %w", context.Cause(ctx))
		case r.state.CompareAndSwap(running, left):
			return unclear(context.Cause(ctx))
		case r.state.Load() == answered:
			return <-r.result
		}
	}
}

// take begins the request; false if its caller has gone.
func (r *request) take() bool { return r.state.CompareAndSwap(waiting, running) }

// release says that nothing of the request has happened after all.
func (r *request) release() { r.state.CompareAndSwap(running, waiting) }

func (r *request) gone() bool { return r.state.Load() == left }

// answer gives the caller its result, if it is still there.
func (r *request) answer(err error) {
	if r.state.CompareAndSwap(running, answered) || r.state.CompareAndSwap(waiting, answered) {
		r.result <- err
	}
}

// verdict is what a function means for the transaction it ran in.
type verdict int

const (
	fits   verdict = iota // it succeeded, or failed before it wrote anything
	spoils                // it failed by itself after it had written
	loses                 // SQLite failed: the transaction may be gone
)

// run calls fn in the transaction of t; r.err is then its result.
func (r *request) run(t *tx) verdict {
	r.err = call(r.fn, t)
	switch {
	case t.dead != nil:
		r.err = t.dead
		return loses
	case r.err != nil && t.wrote:
		return spoils
	}
	t.dead = errDone // a function may keep t, but not use it
	return fits
}

// call turns a panic of fn into an error: it is that caller's matter, not the process's.
func call(fn func(journal.Tx) error, t *tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v", p)
		}
	}()
	return fn(t)
}
