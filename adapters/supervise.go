package adapters

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"parley/ingest/event"
)

// State is how an adapter is doing.
type State string

// The states of an adapter.
const (
	Starting State = "starting"
	Up       State = "up"
	Standby  State = "standby" // another node has its connection, of which there may be one
	Down     State = "down"    // nothing can arrive, and it is tried again
	Refused  State = "refused" // it needs the operator
)

// Status is an adapter's state on this node, and since when.
type Status struct {
	State State     `json:"state"`
	Error string    `json:"error,omitempty"`
	Since time.Time `json:"since"`
}

const (
	// restartMin and restartMax bound the wait before a failed adapter is run again.
	restartMin, restartMax = time.Second, time.Minute
)

// Supervised is an adapter that is to be kept running.
type Supervised struct {
	Runner Runner
	Inbox  Inbox
	// Lease is taken while an Exclusive adapter runs; Supervise sets its Waiting and Log.
	Lease  ExclusiveLease
	Up     func(event.Self) // hears who we are, and that events can arrive (again)
	Report func(Status)     // hears of every change of state
	Log    *slog.Logger
	Wants  Wants
}

// Supervise keeps one adapter running until ctx ends: it is run again, with
// backoff, after a failure, and left alone once the platform refuses it. Other
// adapters are not concerned. An Exclusive one waits for its exclusive lease, which
// is released after each run.
//
// A panic in the adapter is a failure too.
func Supervise(ctx context.Context, s Supervised) {
	s.say(Starting, nil)
	for wait := restartMin; ; wait = min(2*wait, restartMax) {
		var reached atomic.Bool
		err := s.guarded(ctx, Link{Log: s.Log, Wants: s.Wants,
			Up: func(self event.Self) {
				reached.Store(true)
				s.Up(self)
				s.say(Up, nil)
			},
			Down: func(err error) {
				s.Log.Warn("nothing can arrive; the adapter goes on trying", "err", err)
				s.say(Down, err)
			},
		})
		if reached.Load() {
			wait = restartMin
		}
		var refused *RefusedError
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &refused):
			s.Log.Error("the platform refuses this workspace; the others go on", "err", refused.Err, "hint", refused.Hint)
			s.say(Refused, err)
			return
		case err == nil:
			err = errors.New("the connection ended")
		}
		s.Log.Warn("the adapter failed and will be run again", "err", err, "wait", wait)
		s.say(Down, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (s *Supervised) say(state State, err error) {
	status := Status{State: state, Since: time.Now().UTC()}
	if err != nil {
		status.Error = err.Error()
	}
	s.Report(status)
}

func (s *Supervised) guarded(ctx context.Context, link Link) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Log.Error("the adapter panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the adapter panicked: %v", p)
		}
	}()
	run := func(ctx context.Context) error { return s.Runner.Run(ctx, s.Inbox, link) }
	if e, ok := s.Runner.(Exclusive); !ok || !e.Exclusive() {
		return run(ctx)
	}
	lease := s.Lease
	lease.Log = s.Log
	lease.Waiting = func(waiting bool) {
		if waiting {
			s.say(Standby, nil)
		} else {
			s.say(Starting, nil)
		}
	}
	return lease.While(ctx, run)
}
