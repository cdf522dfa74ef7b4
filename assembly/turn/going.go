package turn

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"parley/ingest/event"
	"parley/ingest/journal"
)

// Causes for which a run is cancelled.
var (
	errInterrupted = errors.New("a newer message, or an edit, begins the turn again")
	errWithdrawn   = errors.New("every message of the turn was deleted")
)

// going is a run that is being worked on, and what its thread's intake has
// recorded since. It is entered before the run begins, so that nothing recorded
// meanwhile is missed.
type going struct {
	run     *journal.Run  // that has begun with its message; nil where it is to begin
	deleted chan struct{} // holds a value when messages of a turn were deleted

	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil until a worker has it
	// interruptible is set once the run has begun, with the newest thread_seq
	// that it was given.
	interruptible bool
	base          int64
	newest        int64 // thread_seq of the newest message that asks for a run
	row           int64 // of the run, once it has begun
	edited        int64 // the row of the run that last had a message edited
	changed       bool  // messages of the thread are not as they were recorded any more
}

// enter registers a run that is about to begin, or takes up the one that has begun
// with its message. The context ends when the run is interrupted or withdrawn, and
// at exit.
func (r *Runner) enter(ctx context.Context, lease *journal.Lease) (context.Context, *going) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.handed[lease.Thread]
	delete(r.handed, lease.Thread)
	if g == nil || g.run.Fence != lease.Fence {
		g = newGoing(nil)
	}
	g.mu.Lock()
	g.cancel = cancel
	g.mu.Unlock()
	r.going[lease.Thread] = g
	return ctx, g
}

// maxHanded bounds the runs that have begun with their message and wait for a
// worker. Where there are so many, those that nobody came for are among them: all are
// taken up from the store.
const maxHanded = 4096

// hand keeps a run that has begun for the worker that will take its thread. What
// is recorded meanwhile is told to it.
func (r *Runner) hand(run *journal.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.handed) >= maxHanded {
		clear(r.handed)
	}
	r.handed[run.Thread] = newGoing(run)
}

func newGoing(run *journal.Run) *going { return &going{run: run, deleted: make(chan struct{}, 1)} }

func (r *Runner) exit(thread int64, g *going) {
	r.mu.Lock()
	delete(r.going, thread)
	r.mu.Unlock()
	g.cancel(context.Canceled)
}

// signal tells a run that is going on what has been recorded in its thread.
func (r *Runner) signal(thread int64, outcome journal.Outcome) {
	r.mu.Lock()
	going, handed := r.going[thread], r.handed[thread]
	r.mu.Unlock()
	if going != nil {
		going.hear(outcome)
	}
	if handed != nil { // the one that is going has its end behind it
		handed.hear(outcome)
	}
}

func (g *going) hear(outcome journal.Outcome) {
	if outcome.Disposition == event.Updated {
		g.mu.Lock()
		g.changed = true
		g.mu.Unlock()
	}
	if len(outcome.Deleted) > 0 {
		select {
		case g.deleted <- struct{}{}:
		default: // it will look anyway
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !outcome.TurnAt.IsZero() && outcome.Message != nil {
		g.newest = max(g.newest, outcome.Message.Seq)
	}
	g.edited = cmp.Or(outcome.Edited, g.edited)
	g.judge()
}

// begun makes the run known; what was recorded meanwhile counts.
func (g *going) begun(run *journal.Run, interruptible bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.base, g.row, g.interruptible = run.BaseSeq, run.Row, interruptible
	g.judge()
}

// fresh says whether the messages are as they were when the run was handed on.
func (g *going) fresh() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.changed
}

// judge cancels the run if a newer message is to interrupt it, or a newer state of
// one that it answers.
func (g *going) judge() {
	if g.interruptible && (g.newest > g.base || g.edited == g.row) {
		g.cancel(errInterrupted)
	}
}
