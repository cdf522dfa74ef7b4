package turn

import (
	"context"
	"errors"
	"slices"
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
	cancel context.CancelCauseFunc

	mu            sync.Mutex
	run           *journal.Run // nil until it has begun
	interruptible bool
	newest        int64   // thread_seq of the newest message that asks for a run
	left          []int64 // the run's messages that are not deleted, by row
	deleted       []int64 // rows deleted before the run had begun
}

// enter registers a run that is about to begin.
func (r *Runner) enter(ctx context.Context, thread int64) (context.Context, *going) {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &going{cancel: cancel}
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
	if g == nil || outcome.Message == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(outcome.Deleted) > 0 || !outcome.Message.DeletedAt.IsZero() {
		g.deleted = append(g.deleted, outcome.Message.Row)
	}
	if !outcome.TurnAt.IsZero() {
		g.newest = max(g.newest, outcome.Message.Seq)
	}
	g.judge()
}

// begun makes the run known; what was recorded meanwhile counts.
func (g *going) begun(run *journal.Run, interruptible bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.run, g.interruptible = run, interruptible
	for _, m := range run.Messages {
		g.left = append(g.left, m.Row)
	}
	g.judge()
}

// judge cancels the run if nothing is left of its turn, or if a newer message
// is to interrupt it.
func (g *going) judge() {
	if g.run == nil {
		return
	}
	g.left = slices.DeleteFunc(g.left, func(row int64) bool { return slices.Contains(g.deleted, row) })
	switch {
	case len(g.left) == 0:
		g.cancel(errWithdrawn)
	case g.interruptible && g.newest > g.run.BaseSeq:
		g.cancel(errInterrupted)
	}
}
