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
	Down     State = "down"    // it failed, and is tried again
	Refused  State = "refused" // it needs the operator
)

// Status is an adapter's state, and since when.
type Status struct {
	State State     `json:"state"`
	Error string    `json:"error,omitempty"`
	Since time.Time `json:"since"`
}

const (
	// restartMin and restartMax bound the wait before a failed adapter is run again.
	restartMin, restartMax = time.Second, time.Minute
)

// Supervise keeps one adapter running until ctx ends: it is run again, with
// backoff, after a failure, and left alone once the platform refuses it. Other
// adapters are not concerned. report hears of every change of state, up of who
// we are.
//
// A panic in the adapter is such a failure.
func Supervise(ctx context.Context, runner Runner, up func(event.Self), report func(Status), log *slog.Logger) {
	say := func(state State, err error) {
		s := Status{State: state, Since: time.Now().UTC()}
		if err != nil {
			s.Error = err.Error()
		}
		report(s)
	}
	say(Starting, nil)
	for wait := restartMin; ; wait = min(2*wait, restartMax) {
		var reached atomic.Bool
		err := runGuarded(ctx, runner, log, func(self event.Self) {
			reached.Store(true)
			up(self)
			say(Up, nil)
		})
		if reached.Load() {
			wait = restartMin
		}
		var refused *RefusedError
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &refused):
			log.Error("the platform refuses this workspace; the others go on", "err", refused.Err, "hint", refused.Hint)
			say(Refused, err)
			return
		case err == nil:
			err = errors.New("the connection ended")
		}
		log.Warn("the adapter failed and will be run again", "err", err, "wait", wait)
		say(Down, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func runGuarded(ctx context.Context, runner Runner, log *slog.Logger, up func(event.Self)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("the adapter panicked", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the adapter panicked: %v", p)
		}
	}()
	return runner.Run(ctx, up)
}
