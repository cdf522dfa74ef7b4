package turn

import (
	"context"
	"errors"
	"sync"

	"parley/ingest/journal"
)

// Causes for which a run is cancelled.
var (
	errInterrupted = errors.New("a newer message begins the turn again")
	errWithdrawn   = errors.New("every message of the turn was deleted")
)

// going is a run that is being worked on, and what its thread's intake has
// recorded since. It is entered before the run begins, so that nothing recorded
// meanwhile is missed.
type going struct {
	cancel  context.CancelCauseFunc
	deleted chan struct{} // holds a value when messages of a turn were deleted

	mu sync.Mutex
	// interruptible is set once the run has begun, with the newest thread_seq
	// that it was given.
	interruptible bool
	base          int64
	newest        int64 // thread_seq of the newest message that asks for a run
}

// enter registers a run that is about to begin. The context ends when the run
// is interrupted or withdrawn, and at exit.
func (r *Runner) enter(ctx context.Context, thread int64) (context.Context, *going) {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &going{cancel: cancel, deleted: make(chan struct{}, 1)}
	r.mu.Lock()
	r.going[thread] = g
	r.mu.Unlock()
	return ctx, g
}

func (r *Runner) exit(thread int64, g *going) {
	r.mu.Lock()
	delete(r.going, thread)
	r.mu.Unlock()
	g.cancel(context.Canceled)
}

// signal tells a run that is going on what has been recorded in its thread.
func (r *Runner) signal(thread int64, outcome journal.Outcome) {
	r.mu.Lock()
	g := r.going[thread]
	r.mu.Unlock()
	if g == nil {
		return
	}
	if len(outcome.Deleted) > 0 {
		select {
		case g.deleted <- struct{}{}:
		default: // it will look anyway
		}
	}
	if !outcome.TurnAt.IsZero() && outcome.Message != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.newest = max(g.newest, outcome.Message.Seq)
		g.judge()
	}
}

// begun makes the run known; what was recorded meanwhile counts.
func (g *going) begun(run *journal.Run, interruptible bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.base, g.interruptible = run.BaseSeq, interruptible
	g.judge()
}

// judge cancels the run if a newer message is to interrupt it.
func (g *going) judge() {
	if g.interruptible && g.newest > g.base {
		g.cancel(errInterrupted)
	}
}
