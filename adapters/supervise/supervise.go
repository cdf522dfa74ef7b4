// Package supervise runs the connections of adapters: it begins again after a failure, and holds the lease of a connection that
// only one node may have.
package supervise

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/wake"
)

const (
	// restartMin and restartMax bound the wait before a failed adapter runs again.
	restartMin, restartMax = time.Second, time.Minute
)

// Connection is an adapter's connection under supervision.
type Connection struct {
	adapters.Connection
	// Link is passed to the connection. Its Up is called with our identity, each time that events
	// can arrive (again). Run sets its Down.
	adapters.Link
	Inbox adapters.Inbox
	// Each supervises a connection that Split has returned, until ctx ends.
	Each func(ctx context.Context, c adapters.Connection)
	// Lease is held while an exclusive connection runs. Run sets its Report and Log.
	Lease  Lease
	Report func(adapters.Status) // called at every change of state
}

// Run runs one connection until ctx ends. It runs a failed connection again, with
// backoff, and leaves it stopped if the platform refuses it. Other connections are not
// affected. An exclusive connection waits for its lease. Run releases the lease
// after each run.
//
// A panic in the adapter is a failure too.
func Run(ctx context.Context, s Connection) {
	s.report(adapters.Starting, nil)
	for wait := restartMin; ; wait = min(2*wait, restartMax) {
		var reached atomic.Bool
		link := s.Link
		link.Up = func(self event.Self) {
			reached.Store(true)
			s.Up(self)
			s.report(adapters.Up, nil)
		}
		link.Down = func(err error) {
			s.Log.Warn("no events arrive; the adapter keeps trying", "err", err)
			s.report(adapters.Down, err)
		}
		err := s.guarded(ctx, link)
		if reached.Load() {
			wait = restartMin
		}
		var refused *adapters.RefusedError
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &refused):
			s.Log.Error("the platform refuses this workspace; the others continue", "err", refused.Err, "hint", refused.Hint)
			s.report(adapters.Refused, err)
			return
		case err == nil:
			err = errors.New("the connection ended")
		}
		s.Log.Warn("the adapter failed; it runs again after a wait", "err", err, "wait", wait)
		s.report(adapters.Down, err)
		if !wake.After(ctx, wait) {
			return
		}
	}
}

func (s *Connection) report(state adapters.ConnectionState, err error) {
	status := adapters.Status{State: state, Since: time.Now().UTC()}
	if err != nil {
		status.Error = err.Error()
	}
	s.Report(status)
}

func (s *Connection) guarded(ctx context.Context, link adapters.Link) (err error) {
	defer adapters.Recover(s.Log, &err)
	run := func(ctx context.Context) error { return s.Connection.Run(ctx, s.Inbox, link) }
	switch {
	case s.Split != nil:
		return s.split(ctx)
	case !s.Exclusive:
		return run(ctx)
	}
	lease := s.Lease
	lease.Log = s.Log
	lease.Report = func(state adapters.ConnectionState) { s.report(state, nil) }
	return lease.While(ctx, run)
}

// split supervises the connections of which this one consists.
func (s *Connection) split(ctx context.Context) error {
	parts, err := s.Split(ctx)
	if err != nil {
		return err
	}
	s.report(adapters.Divided, nil)
	var running sync.WaitGroup
	for _, c := range parts {
		running.Go(func() { s.Each(ctx, c) })
	}
	running.Wait()
	<-ctx.Done() // a refused one does not run again
	return nil
}
