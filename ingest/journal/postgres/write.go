package postgres

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/internal/queue"
	"parley/ingest/journal/storage"
)

// maxCallers bounds the calls that share one transaction.
const maxCallers = 32

// Write implements storage.Engine.
func (e *Engine) Write(ctx context.Context, options storage.WriteOptions, fn func(tx storage.Tx) error) error {
	return e.calls.Do(func() error { return e.lineOf(options.Thread).Submit(ctx, options, fn) })
}

// lineOf returns the line for a call about a thread. All calls about one thread use
// one line, so that they do not wait for each other's row locks.
func (e *Engine) lineOf(thread event.ThreadKey) *queue.Queue {
	at := e.turn.Add(1)
	if thread != "" {
		at = maphash.String(e.seed, string(thread))
	}
	return e.lines[at%uint64(len(e.lines))]
}

// committer runs the calls of one line. The calls that wait at the same time share a
// transaction, with its BEGIN, its round trips and its flush to disk.
type committer struct {
	*Engine
	line *queue.Queue
	// most bounds the calls of the next transaction. It shrinks while shared
	// transactions fail: nodes that work on the same threads wait for each other's
	// locks, and large transactions hold more of them.
	most  int
	apart apart
}

// apart are the calls that run alone, by thread and in their order. The zero value is ready.
type apart struct {
	mu      sync.Mutex
	threads map[event.ThreadKey][]*queue.Call // the first one of each runs
}

// behind adds a call behind those of its thread that run alone, so that none overtakes another: not in its commit,
// and not in what its caller does after the commit. It returns false, and adds nothing, if there are none.
func (a *apart) behind(c *queue.Call) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.threads[c.Thread]) == 0 {
		return false
	}
	a.threads[c.Thread] = append(a.threads[c.Thread], c)
	return true
}

// begin notes the first call of a thread that runs alone.
func (a *apart) begin(c *queue.Call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.threads == nil {
		a.threads = map[event.ThreadKey][]*queue.Call{}
	}
	a.threads[c.Thread] = []*queue.Call{c}
}

// end removes the first call of a thread, and returns the next one; nil if there is none.
func (a *apart) end(thread event.ThreadKey) *queue.Call {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.threads[thread] = a.threads[thread][1:]; len(a.threads[thread]) > 0 {
		return a.threads[thread][0]
	}
	delete(a.threads, thread)
	return nil
}

// serve runs calls until the engine is closed.
func (e *committer) serve(ctx context.Context) {
	for first := e.line.Next(e.quit); first != nil; first = e.line.Next(e.quit) {
		if !e.apart.behind(first) {
			e.share(ctx, first)
		}
	}
}

// share runs first and the calls that wait behind it in one transaction. If that fails
// and another run may succeed, each of the calls runs again in its own transaction.
func (e *committer) share(ctx context.Context, first *queue.Call) {
	var calls []*queue.Call
	began := time.Now()
	err := e.write(ctx, min(shareWithin, e.within), e.opening(beginWrite), func(t *tx) (int, error) {
		for c := first; c != nil; c = e.line.Behind(len(calls), began) {
			if c != first && e.apart.behind(c) || !c.Take() {
				continue
			}
			before := t.calls
			err := c.Run(t)
			if err != nil && t.calls == before {
				c.Answer(err) // the call has left nothing in the transaction
				continue
			}
			if calls = append(calls, c); err != nil || len(calls) >= e.most {
				return len(calls), err
			}
		}
		return len(calls), nil
	})
	if err == nil {
		e.most = min(e.most+1, maxCallers)
	} else {
		e.most = max(1, e.most/2)
	}
	if err != nil && len(calls) == 0 {
		calls = append(calls, first) // there is no connection
	}
	apart := len(calls) > 1 || isBroken(err) || raced(err) || code(err) == lockNotAvailable
	for _, c := range calls {
		if err == nil || errors.Is(err, storage.ErrUnclear) || !apart {
			c.Answer(unavailable(err))
			continue
		}
		c.Release()
		e.runApart(ctx, c)
	}
}

// runApart runs a call in its own transaction, beside the line, and then those of its thread that come meanwhile. Calls
// without a thread have no order.
func (e *committer) runApart(ctx context.Context, c *queue.Call) {
	if c.Thread == "" {
		e.workers.Go(func() { e.alone(ctx, c) })
		return
	}
	if e.apart.behind(c) {
		return
	}
	e.apart.begin(c)
	e.workers.Go(func() {
		for ; c != nil; c = e.apart.end(c.Thread) {
			e.alone(ctx, c)
		}
	})
}

// alone runs one call in its own transaction, which waits for row locks without a
// bound. It runs the call again after a lost race, or if the connection broke before
// COMMIT.
func (e *Engine) alone(ctx context.Context, c *queue.Call) {
	e.apart <- struct{}{}
	defer func() { <-e.apart }()
	for tries := (tries{began: time.Now()}); c.Take(); c.Release() {
		err := e.write(ctx, e.within, append(e.opening(beginWrite), waitForLocks), func(t *tx) (int, error) { return 1, c.Run(t) })
		if !tries.again(ctx, err) {
			c.Answer(unavailable(err))
			return
		}
	}
}
