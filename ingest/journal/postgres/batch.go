package postgres

import (
	"context"
	"fmt"
	"time"

	"parley/ingest/journal"
	"parley/ingest/journal/internal/queue"
)

// The bounds of one transaction that several calls share. It takes further calls
// that nobody outside waits for only so long, and at least so many of them: what is
// urgent meanwhile waits for its end.
const (
	maxCallers   = 32
	ordinaryTime = 2 * time.Millisecond
	ordinaryMin  = 8
)

// committer runs the calls of Write that wait in its line, as many as there are in
// one transaction: they share its BEGIN and its flush to disk, and what one of them
// can do without an answer goes along with the next one's question. What is about one
// thread is one committer's.
type committer struct {
	*Engine
	line *queue.Queue
	// most is how many calls may share a transaction now. Nodes that work on the
	// same threads get into one another's way; the fewer, the less.
	most int
}

// serve runs calls until quit is closed.
func (e *committer) serve(ctx context.Context) {
	for c := e.line.Next(e.quit); c != nil; c = e.line.Next(e.quit) {
		e.together(ctx, c)
	}
}

// batch are calls that share a transaction.
type batch struct {
	calls []*queue.Call
	begun time.Time
}

// together runs first, and what waits behind it, in one transaction. Where that does
// not end well, those who have not their answer are run apart.
func (e *committer) together(ctx context.Context, first *queue.Call) {
	b := &batch{begun: time.Now()}
	unclear, err := e.share(ctx, b, first)
	if err == nil {
		e.most = min(e.most+1, maxCallers)
	} else {
		e.most = max(1, e.most/2)
	}
	switch {
	case unclear:
		err = fmt.Errorf("%w: %w: %w", journal.ErrUnclear, journal.ErrUnavailable, err)
	case err == nil:
	case len(b.calls) == 0:
		b.calls = append(b.calls, first) // there was no connection
		fallthrough
	case len(b.calls) > 1, isBroken(err), outdated(err), raced(err), code(err) == lockNotAvailable:
		for _, c := range b.calls {
			c.Release()
			select {
			case e.apart <- c:
			case <-e.quit: // whoever asked for it has gone
			}
		}
		return
	}
	for _, c := range b.calls {
		c.Answer(unavailable(err))
	}
}

// share runs calls in one transaction, and commits it.
func (e *committer) share(ctx context.Context, b *batch, first *queue.Call) (unclear bool, err error) {
	c, err := e.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer c.release(ctx)
	var ran time.Time
	unclear, err = c.transact(ctx, e.opening(beginWrite), func(t journal.Tx) error {
		defer func() { ran = time.Now() }()
		for call := first; call != nil; call = e.next(b) {
			if err := b.run(t, call); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && len(b.calls) > 0 {
		e.recorder.Committed(len(b.calls), time.Since(ran))
	}
	return unclear, err
}

// next returns the next call that waits, what is urgent first; nil where the
// transaction is full or nobody waits.
func (e *committer) next(b *batch) *queue.Call {
	n := len(b.calls)
	if n >= e.most {
		return nil
	}
	if c := e.line.Urgent(); c != nil {
		return c
	}
	if n >= ordinaryMin && time.Since(b.begun) > ordinaryTime {
		return nil
	}
	return e.line.Ordinary()
}

// run runs a call in the transaction. One that fails before it has done anything
// has its answer; any other failure is the transaction's.
func (b *batch) run(t journal.Tx, call *queue.Call) error {
	if !call.Take() {
		return nil
	}
	p := &part{Tx: t}
	err := call.Run(p)
	p.over = true
	if err != nil && !p.used {
		call.Answer(err)
		return nil
	}
	b.calls = append(b.calls, call)
	return err
}

// part is what one function sees of the transaction that it shares.
type part struct {
	journal.Tx
	used bool
	over bool // the function has returned
}

// use notes that the transaction may hold something of the function.
func (p *part) use() error {
	if p.over {
		return errDone
	}
	p.used = true
	return nil
}

// Exec implements journal.Tx.
func (p *part) Exec(query string, args ...any) (int64, error) {
	if err := p.use(); err != nil {
		return 0, err
	}
	return p.Tx.Exec(query, args...)
}

// Row implements journal.Tx.
func (p *part) Row(dest []any, query string, args ...any) (bool, error) {
	if err := p.use(); err != nil {
		return false, err
	}
	return p.Tx.Row(dest, query, args...)
}

// Rows implements journal.Tx.
func (p *part) Rows(each func(scan func(dest ...any) error) error, query string, args ...any) error {
	if err := p.use(); err != nil {
		return err
	}
	return p.Tx.Rows(each, query, args...)
}

// Later implements journal.Tx.
func (p *part) Later(none error, dest []any, query string, args ...any) error {
	if err := p.use(); err != nil {
		return err
	}
	return p.Tx.Later(none, dest, query, args...)
}
