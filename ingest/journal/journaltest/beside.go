package journaltest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"parley/ingest/journal"
)

// Shared is an engine on which transactions go on side by side.
type Shared interface {
	journal.Engine
	// Waits says whether one transaction waits for another.
	Waits(ctx context.Context) (bool, error)
}

// beside makes a call while a transaction is open that has done first. Once the
// call has ended, or waits for that transaction, the transaction does then and
// ends. It returns whether the call had to wait. Where one transaction goes on at a
// time, the call may come before or behind it.
func (f *fixture) beside(first, then func(tx journal.Tx) error, call func() error) (waited bool) {
	f.Helper()
	opened, goOn := make(chan struct{}), make(chan struct{})
	open := sync.OnceFunc(func() { close(opened) })
	done, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		done <- f.engine.Write(f.ctx, func(tx journal.Tx) error {
			if err := first(tx); err != nil {
				return err
			}
			open()
			<-goOn
			return then(tx)
		})
	}()
	select {
	case err := <-done:
		f.Fatalf("the transaction is not open: %v", err)
	case <-opened:
	}
	go func() { ended <- call() }()
	waited, errCall, errWaits := f.untilWaits(ended)
	close(goOn)
	if err := errors.Join(<-done, errWaits); err != nil {
		f.Fatalf("%v", err)
	}
	if waited {
		errCall = <-ended
	}
	f.must(errCall)
	return waited
}

// untilWaits returns once a call has ended, or waits for another transaction.
func (f *fixture) untilWaits(ended <-chan error) (waited bool, errCall, errWaits error) {
	shared, ok := f.engine.(Shared)
	if !ok {
		return true, nil, nil
	}
	for {
		select {
		case err := <-ended:
			return false, err, nil
		default:
		}
		if waits, err := shared.Waits(f.ctx); waits || err != nil {
			return true, nil, err
		}
	}
}

// onShared says whether transactions go on side by side.
func (f *fixture) onShared() bool {
	_, ok := f.engine.(Shared)
	return ok
}

// retold is an engine that counts how often a transaction was begun again,
// since it could not go on beside others.
type retold struct {
	journal.Engine
	again atomic.Int64
}

// Write implements journal.Engine.
func (c *retold) Write(ctx context.Context, fn func(tx journal.Tx) error) error {
	begun := false
	return c.Engine.Write(ctx, func(tx journal.Tx) error {
		if begun {
			c.again.Add(1)
		}
		begun = true
		return fn(tx)
	})
}
