// Package queue holds the calls of an engine's Write until a transaction takes
// them, urgent ones first.
package queue

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

const (
	// maxWaiting bounds each of the two lines. Later callers wait to join one.
	maxWaiting = 1024
	// ordinaryTime bounds the time in which a transaction takes calls that are not
	// urgent, beyond their share. Urgent calls that arrive during its COMMIT wait for the end
	// of the COMMIT.
	ordinaryTime = 3 * time.Millisecond
	// ordinaryShare is the number of other calls that a transaction takes for each urgent one,
	// however long they take. A message needs so many calls after its accept. With fewer, the
	// answers fall ever further behind a flood of accepts.
	ordinaryShare = 5
	// ordinaryMin is the number of calls that a transaction takes in any case.
	ordinaryMin = 8
)

// Queue holds the calls that wait for a transaction. Any number of callers may use it
// concurrently, and one goroutine serves it.
type Queue struct {
	urgent, ordinary chan *Call
	owed             int // further calls that are not urgent, of the transaction's share
}

// New returns an empty queue.
func New() *Queue {
	return &Queue{urgent: make(chan *Call, maxWaiting), ordinary: make(chan *Call, maxWaiting)}
}

// Submit waits for a transaction that runs fn and returns the result. It implements an
// engine's Write: ctx bounds the wait, never the transaction.
func (q *Queue) Submit(ctx context.Context, options storage.WriteOptions, fn func(storage.Tx) error) error {
	if ctx.Err() != nil {
		return withdrawn(ctx)
	}
	c, line := &Call{Thread: options.Thread, fn: fn, committed: options.Committed, batch: options.Batch, result: make(chan error, 1)}, q.ordinary
	if options.Urgent {
		line = q.urgent
	}
	select {
	case line <- c:
		if options.Queued != nil {
			options.Queued()
		}
		return c.wait(ctx)
	case <-ctx.Done():
		return withdrawn(ctx)
	}
}

func withdrawn(ctx context.Context) error { return fmt.Errorf("wait to write: %w", context.Cause(ctx)) }

// Next waits for the first call of a transaction. It returns nil after quit is closed.
func (q *Queue) Next(quit <-chan struct{}) *Call {
	q.owed = 0
	if c := q.firstUrgent(); c != nil {
		return c
	}
	select {
	case c := <-q.urgent:
		q.owed = ordinaryShare
		return c
	case c := <-q.ordinary:
		return c
	case <-quit:
		return nil
	}
}

// Behind returns a waiting call for a transaction that has n calls, urgent ones first. It
// returns nil if none waits, or if the transaction has taken its share of the others.
func (q *Queue) Behind(n int, began time.Time) *Call {
	c := q.firstUrgent()
	if c == nil && (q.owed > 0 || n < ordinaryMin || time.Since(began) <= ordinaryTime) {
		c = first(q.ordinary)
		q.owed--
	}
	return c
}

// firstUrgent returns the first urgent call, which adds to the transaction's share of the others; nil
// for none.
func (q *Queue) firstUrgent() *Call {
	c := first(q.urgent)
	if c != nil {
		q.owed = max(q.owed, 0) + ordinaryShare
	}
	return c
}

func first(line <-chan *Call) *Call {
	select {
	case c := <-line:
		return c
	default:
		return nil
	}
}

// Waiting returns the number of calls in each line.
func (q *Queue) Waiting() (urgent, ordinary int) { return len(q.urgent), len(q.ordinary) }

// The states of a call. Its caller and the serving goroutine both change the state, each
// by compare-and-swap, so that both agree on the first change.
const (
	waiting  int32 = iota // the call has had no effect; the caller may withdraw it
	running               // in a running transaction
	answered              // the result is set, or about to be
	left                  // the caller has left
)

// Call is one call of Write.
type Call struct {
	Thread event.ThreadKey // of WriteOptions

	fn        func(storage.Tx) error
	committed func() // of WriteOptions
	batch     *event.Batch
	state     atomic.Int32
	result    chan error // holds the answer; never blocks the serving goroutine
}

// wait returns the answer, or leaves when ctx ends.
func (c *Call) wait(ctx context.Context) error {
	select {
	case err := <-c.result:
		return err
	case <-ctx.Done():
		c.batch.Break() // before the call leaves, so that no later one runs without it
	}
	for {
		switch {
		case c.state.CompareAndSwap(waiting, left):
			c.fn = nil // the line may be long, and its calls large
			return withdrawn(ctx)
		case c.state.CompareAndSwap(running, left):
			return fmt.Errorf("%w: %w", storage.ErrUnclear, context.Cause(ctx))
		case c.state.Load() == answered:
			return <-c.result
		}
	}
}

// errBroken is the answer to a call of a broken batch. It says nothing about the store.
var errBroken = fmt.Errorf("wait to write: an earlier call of the batch was not made: %w", context.Canceled)

// Take begins the call. It returns false if its caller has left, or if its batch is broken.
func (c *Call) Take() bool {
	if c.batch.IsBroken() {
		c.Answer(errBroken)
		return false
	}
	return c.state.CompareAndSwap(waiting, running)
}

// Release notes that the call has had no effect after all.
func (c *Call) Release() { c.state.CompareAndSwap(running, waiting) }

// Gone reports whether the caller has left.
func (c *Call) Gone() bool { return c.state.Load() == left }

// Answer gives the caller its result, unless the caller has left. Without an error, the call is
// committed.
func (c *Call) Answer(err error) {
	switch {
	case err != nil:
		c.batch.Break()
	case c.committed != nil:
		c.committed()
	}
	if c.state.CompareAndSwap(running, answered) || c.state.CompareAndSwap(waiting, answered) {
		c.result <- err
	}
}

// Run calls the function in a transaction. A panic is an error of that caller, not the
// end of the process.
func (c *Call) Run(tx storage.Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v", p)
		}
	}()
	return c.fn(tx)
}
