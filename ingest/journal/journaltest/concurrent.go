package journaltest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley/ingest/journal/storage"
)

// Shared is an engine whose database other nodes share, so transactions can run
// concurrently.
type Shared interface {
	storage.Engine
	// Another returns another node's engine on the same database, open until the test
	// ends.
	Another() (storage.Engine, error)
	// Session returns the number of the session in which a transaction runs.
	Session(tx storage.Tx) (int64, error)
	// Waits reports whether another session waits for a lock of this one.
	Waits(ctx context.Context, session int64) (bool, error)
}

// node returns another node, with an engine of its own if nodes can share the database.
func (f *fixture) node(name string) *fixture {
	f.Helper()
	engine := f.engine
	if shared, ok := engine.(Shared); ok {
		var err error
		engine, err = shared.Another()
		f.must(err)
	}
	return process(f.failing, f.ctx, engine, f.clock, name, time.Minute)
}

// beside makes a call while another node's transaction is open and has run first. After
// the call has ended, or waits for that transaction, the transaction runs then and ends.
// It returns whether the call had to wait. If the engine runs one transaction at a time,
// the call may run before or after it.
func (f *fixture) beside(first, then func(tx storage.Tx) error, call func() error) (waited bool) {
	f.Helper()
	shared, _ := f.engine.(Shared)
	var session atomic.Int64
	opened, goOn := make(chan struct{}), make(chan struct{})
	open := sync.OnceFunc(func() { close(opened) })
	done, ended := make(chan error, 1), make(chan error, 1)
	other := f.node("other")
	go func() {
		done <- other.engine.Write(f.ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
			if err := first(tx); err != nil {
				return err
			}
			if shared != nil {
				number, err := shared.Session(tx)
				if err != nil {
					return err
				}
				session.Store(number)
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
	waited, errCall, errWaits := untilWaits(f.ctx, shared, &session, ended)
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

// untilWaits returns after a call has ended, or waits for a session. Without a shared
// engine it returns at once.
func untilWaits(ctx context.Context, shared Shared, session *atomic.Int64, ended <-chan error) (waited bool, errCall, errWaits error) {
	if shared == nil {
		return true, nil, nil
	}
	for {
		select {
		case err := <-ended:
			return false, err, nil
		default:
		}
		if waits, err := shared.Waits(ctx, session.Load()); waits || err != nil {
			return true, nil, err
		}
	}
}

// onShared reports whether transactions run concurrently.
func (f *fixture) onShared() bool {
	_, ok := f.engine.(Shared)
	return ok
}
