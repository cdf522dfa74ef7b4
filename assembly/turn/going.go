package turn

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/wake"
	"parley/ingest/work"
)

// Causes for which the context of an agent's run ends because nobody wants its answer; see Unwanted.
var (
	ErrInterrupted = errors.New("a newer message, or an edit, begins the turn again")
	ErrWithdrawn   = errors.New("every message of the turn was deleted")
	ErrStopped     = errors.New("a person stopped the run")
)

// Unwanted reports whether the context of an agent's run has ended because nobody wants its answer: an agent whose server works on tells it
// to stop. If the process ends or a claim is lost, the answer is still wanted.
func Unwanted(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrInterrupted) || errors.Is(cause, ErrWithdrawn) || errors.Is(cause, ErrStopped)
}

// The payloads of a claim.
var (
	currentRun = work.Slot[*going]{Key: "current"} // the run that a worker works on
	handedRun  = work.Slot[*going]{Key: "handed"}  // a run that began with its message, for the worker to take
	begunRun   = work.Slot[string]{Key: "begun"}   // the id of the run that a worker last began or resumed from the store
)

// going is a run, and the changes that intake has recorded in its thread since. It is
// registered before the run begins, so that it misses no change.
type going struct {
	agent string
	run   *runs.Run // nil until the run begins
	// arrived holds a signal if messages that ask the agent have arrived since the last one.
	arrived wake.Signal

	mu            sync.Mutex
	cancel        context.CancelCauseFunc // nil until the run has begun
	interruptible bool
	newest        int64  // thread_seq of the newest message that asks the agent
	edited        string // the id of the last run with an edited message
	withdrawn     string // the id of the last run that lost all its messages
	stopped       string // the id of the last run that a person stopped
	changed       bool   // messages of the thread have changed since they were recorded
}

func newGoing(agent string, run *runs.Run) *going {
	return &going{agent: agent, run: run, arrived: wake.NewSignal()}
}

// enter registers the run that is about to begin, or takes the one that began with
// its message. A handed run that this claim has begun or resumed from the store already
// is dropped: the agent was asked for it. enter returns nil while another agent's worker
// works on the thread: that one, or the next look into the store, wakes this agent's.
func enter(c *work.Claim, agent string) *going {
	g := handedRun.Get(c)
	ours := g != nil && g.agent == agent
	if !ours || g.run.ID == begunRun.Get(c) {
		g = newGoing(agent, nil)
	}
	if !currentRun.PutNew(c, g) { // before the run leaves handedRun, so that report finds it in one slot
		return nil
	}
	if ours {
		handedRun.Take(c)
	}
	return g
}

// report passes a recorded change to the runs of a thread. It looks for the handed run
// first, because enter moves that run from handedRun to currentRun.
func report(c *work.Claim, agent string, result record.Result) {
	for _, slot := range []work.Slot[*going]{handedRun, currentRun} {
		if g := slot.Get(c); g != nil {
			g.record(agent, result)
		}
	}
}

// record notes a change of the thread, which may cancel the run. Agent is the one that a
// new message asks.
func (g *going) record(agent string, result record.Result) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed = g.changed || result.Disposition == event.Updated
	if !result.TurnAt.IsZero() && agent == g.agent {
		if result.Message.Reason != event.ReasonWorkstream && result.Message.Reason != event.ReasonSchedule { // they wait
			g.newest = max(g.newest, result.Message.Seq)
		}
		g.arrived.Set()
	}
	if m := result.Message; m != nil && m.Trigger == messages.TriggerPassive && m.Reason == event.ReasonWorkstream {
		g.arrived.Set() // the agent may take it
	}
	g.edited = cmp.Or(result.Edited, g.edited)
	g.withdrawn = cmp.Or(result.Withdrawn, g.withdrawn)
	g.stopped = cmp.Or(result.Stopped, g.stopped)
	g.judge()
}

// stop cancels a run that the journal has ended.
func (g *going) stop(run string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = run
	g.judge()
}

// begun notes that the run has begun. It also applies the changes that were recorded before.
func (g *going) begun(interruptible bool, cancel context.CancelCauseFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.interruptible, g.cancel = interruptible, cancel
	g.run.Fresh = g.run.Fresh && !g.changed
	g.judge()
}

// judge cancels the run if a person stopped it, if all its messages were deleted, or if a
// newer message, or an edit of a message that the run answers, interrupts it.
func (g *going) judge() {
	switch {
	case g.cancel == nil:
	case g.stopped == g.run.ID:
		g.cancel(ErrStopped)
	case g.withdrawn == g.run.ID:
		g.cancel(ErrWithdrawn)
	case g.interruptible && (g.newest > g.run.BaseSeq || g.edited == g.run.ID):
		g.cancel(ErrInterrupted)
	}
}
