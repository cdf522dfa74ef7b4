// Package queue holds the calls of an engine's Write until a transaction takes
// them: what somebody outside waits for first, unless more of it comes than can be
// worked on.
package queue

import (
	"context"
	"fmt"
	"sync/atomic"

	"parley/ingest/journal"
)

// maxWaiting bounds each of the two lines; who comes later waits to stand in one.
const maxWaiting = 1024

// Queue is the line before the transactions. Any number of callers may use it at
// once, and one goroutine serves it.
type Queue struct {
	urgent, patient, ordinary chan *Call
	// credit is how many ordinary calls were taken for which no patient one was yet.
	credit int
}

// ordinaryShare is how many ordinary calls are taken for each patient one: a message
// that is accepted takes about so many transactions until it is answered. maxCredit is
// how much of it may be saved up.
const ordinaryShare, maxCredit = 3, 96

// New returns an empty queue.
func New() *Queue {
	return &Queue{
		urgent: make(chan *Call, maxWaiting), patient: make(chan *Call, maxWaiting), ordinary: make(chan *Call, maxWaiting),
	}
}

// Submit lines up for a transaction and returns what became of it. It is Write of
// an engine: ctx bounds the wait, never the transaction.
func (q *Queue) Submit(ctx context.Context, fn func(journal.Tx) error) error {
	if ctx.Err() != nil {
		return withdrawn(ctx)
	}
	c, line := &Call{fn: fn, result: make(chan error, 1)}, q.ordinary
	switch {
	case journal.IsUrgent(ctx):
		line = q.urgent
	case journal.IsPatient(ctx):
		line = q.patient
	}
	select {
	case line <- c:
		return c.wait(ctx)
	case <-ctx.Done():
		return withdrawn(ctx)
	}
}

func withdrawn(ctx context.Context) error { return fmt.Errorf("wait to write: %w", context.Cause(ctx)) }

// Next waits for a call; nil once quit is closed.
func (q *Queue) Next(quit <-chan struct{}) *Call {
	select {
	case c := <-q.urgent:
		return c
	default:
	}
	select {
	case c := <-q.urgent:
		return c
	case c := <-q.patient:
		return c
	case c := <-q.ordinary:
		return q.taken(c)
	case <-quit:
		return nil
	}
}

// taken counts an ordinary call.
func (q *Queue) taken(c *Call) *Call {
	q.credit = min(q.credit+1, maxCredit)
	return c
}

// Urgent returns a waiting call that is urgent, or else a patient one whose turn it
// is; nil for none.
func (q *Queue) Urgent() *Call {
	select {
	case c := <-q.urgent:
		return c
	default:
	}
	if q.credit < ordinaryShare {
		return nil
	}
	select {
	case c := <-q.patient:
		q.credit -= ordinaryShare
		return c
	default:
		return nil
	}
}

// Ordinary returns a waiting call that is not urgent; nil for none.
func (q *Queue) Ordinary() *Call {
	select {
	case c := <-q.ordinary:
		return q.taken(c)
	default:
		return nil
	}
}

// Waiting is how many calls that are not urgent stand in line.
func (q *Queue) Waiting() int { return len(q.ordinary) }

// WaitingUrgent is how many calls that are urgent stand in line.
func (q *Queue) WaitingUrgent() int { return len(q.urgent) }

// How far a call has come. Its caller and who serves it both change that, each by
// compare-and-swap, so that both agree on who was first.
const (
	waiting  int32 = iota // nothing of it has happened; the caller may withdraw it
	running               // in a transaction that is under way
	answered              // the result is there, or about to be
	left                  // the caller has gone
)

// Call is one call of Write.
type Call struct {
	fn     func(journal.Tx) error
	state  atomic.Int32
	result chan error // holds the answer; never blocks who serves
}

// wait returns the answer, or leaves when ctx ends.
func (c *Call) wait(ctx context.Context) error {
	select {
	case err := <-c.result:
		return err
	case <-ctx.Done():
	}
	for {
		switch {
		case c.state.CompareAndSwap(waiting, left):
			c.fn = nil // the line may be long, and what it holds large
			return withdrawn(ctx)
		case c.state.CompareAndSwap(running, left):
			return fmt.Errorf("%w: %w", journal.ErrUnclear, context.Cause(ctx))
		case c.state.Load() == answered:
			return <-c.result
		}
	}
}

// Take begins the call; false if its caller has gone.
func (c *Call) Take() bool { return c.state.CompareAndSwap(waiting, running) }

// Release says that nothing of the call has happened after all.
func (c *Call) Release() { c.state.CompareAndSwap(running, waiting) }

// Gone says whether the caller has left.
func (c *Call) Gone() bool { return c.state.Load() == left }

// Answer gives the caller its result, if it is still there.
func (c *Call) Answer(err error) {
	if c.state.CompareAndSwap(running, answered) || c.state.CompareAndSwap(waiting, answered) {
		c.result <- err
	}
}

// Run calls the function in a transaction. A panic is that caller's error, not
// the process's end.
func (c *Call) Run(tx journal.Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a transaction: %v", p)
		}
	}()
	return c.fn(tx)
}
