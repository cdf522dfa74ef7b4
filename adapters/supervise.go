package adapters

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"parley/ingest/event"
	"parley/ingest/wake"
)

// ConnectionState is the state of an adapter.
type ConnectionState string

// The states of an adapter.
const (
	Starting ConnectionState = "starting"
	Up       ConnectionState = "up"
	Standby  ConnectionState = "standby" // another node has the exclusive connection
	Down     ConnectionState = "down"    // no events arrive; the adapter or the supervisor keeps trying
	Refused  ConnectionState = "refused" // the operator must act
	Divided  ConnectionState = ""        // the connections of which this one consists have states of their own
)

// Status is an adapter's state on this node.
type Status struct {
	State ConnectionState `json:"state"`
	Error string          `json:"error,omitempty"`
	Since time.Time       `json:"since"`
}

const (
	// restartMin and restartMax bound the wait before a failed adapter runs again.
	restartMin, restartMax = time.Second, time.Minute
)

// Supervised is a connection under supervision.
type Supervised struct {
	Connection
	// Link is passed to the connection. Its Up is called with our identity, each time that events
	// can arrive (again). Supervise sets its Down.
	Link
	Inbox Inbox
	// Each supervises a connection that Split has returned, until ctx ends.
	Each func(ctx context.Context, c Connection)
	// Lease is held while an exclusive connection runs. Supervise sets its Report and Log.
	Lease  ExclusiveLease
	Report func(Status) // called at every change of state
}

// Supervise runs one connection until ctx ends. It runs a failed connection again, with
// backoff, and leaves it stopped if the platform refuses it. Other connections are not
// affected. An exclusive connection waits for its lease. Supervise releases the lease
// after each run.
//
// A panic in the adapter is a failure too.
func Supervise(ctx context.Context, s Supervised) {
	s.report(Starting, nil)
	for wait := restartMin; ; wait = min(2*wait, restartMax) {
		var reached atomic.Bool
		link := s.Link
		link.Up = func(self event.Self) {
			reached.Store(true)
			s.Up(self)
			s.report(Up, nil)
		}
		link.Down = func(err error) {
			s.Log.Warn("no events arrive; the adapter keeps trying", "err", err)
			s.report(Down, err)
		}
		err := s.guarded(ctx, link)
		if reached.Load() {
			wait = restartMin
		}
		var refused *RefusedError
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &refused):
			s.Log.Error("the platform refuses this workspace; the others continue", "err", refused.Err, "hint", refused.Hint)
			s.report(Refused, err)
			return
		case err == nil:
			err = errors.New("the connection ended")
		}
		s.Log.Warn("the adapter failed; it runs again after a wait", "err", err, "wait", wait)
		s.report(Down, err)
		if !wake.After(ctx, wait) {
			return
		}
	}
}

func (s *Supervised) report(state ConnectionState, err error) {
	status := Status{State: state, Since: time.Now().UTC()}
	if err != nil {
		status.Error = err.Error()
	}
	s.Report(status)
}

func (s *Supervised) guarded(ctx context.Context, link Link) (err error) {
	defer Recover(s.Log, &err)
	run := func(ctx context.Context) error { return s.Run(ctx, s.Inbox, link) }
	switch {
	case s.Split != nil:
		return s.split(ctx)
	case !s.Exclusive:
		return run(ctx)
	}
	lease := s.Lease
	lease.Log = s.Log
	lease.Report = func(state ConnectionState) { s.report(state, nil) }
	return lease.While(ctx, run)
}

// split supervises the connections of which this one consists.
func (s *Supervised) split(ctx context.Context) error {
	parts, err := s.Split(ctx)
	if err != nil {
		return err
	}
	s.report(Divided, nil)
	var running sync.WaitGroup
	for _, c := range parts {
		running.Go(func() { s.Each(ctx, c) })
	}
	running.Wait()
	<-ctx.Done() // a refused one does not run again
	return nil
}

// ErrPanic is wrapped by the error of a panic.
var ErrPanic = errors.New("panic")

// Recover is deferred around the calls of an adapter or an agent. It turns a panic into the
// error of the call, and logs it with args.
func Recover(log *slog.Logger, err *error, args ...any) {
	if p := recover(); p != nil {
		log.Error("a call panicked", append(args, "panic", p, "stack", string(debug.Stack()))...)
		*err = fmt.Errorf("%w: %v", ErrPanic, p)
	}
}
