package turn

import (
	"context"

	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/work"
)

// Stop ends an unfinished run at a person's request, whichever node works on it. The notice
// informs the thread. It returns runs.ErrEnded if the run has ended and
// storage.ErrNotFound if it is unknown.
func (r *Runner) Stop(ctx context.Context, run string, notice outbox.Notice) error {
	stopped, err := r.Runs.StopRun(ctx, run, notice)
	if err != nil {
		return err
	}
	if g, ok := r.works.Load(stopped.Thread); ok {
		g.(*going).stop(run)
	} else {
		r.leave(stopped.Agent, stopped.Thread, leftRun{run, true})
	}
	r.Work.Tell(stopped.Owner, work.Turns, stopped.Agent, stopped.Thread)
	r.Work.Wake(work.Turns, stopped.Agent, stopped.Thread)
	r.Work.Wake(work.Deliveries, "", stopped.Thread)
	return nil
}

// Unasked implements ingest.Turns: a question has ended because nobody answered it in time.
func (r *Runner) Unasked(agent string, thread int64, run string) {
	r.leave(agent, thread, leftRun{run: run})
}

// leftRun is a run whose work nobody wants, and for which this node makes no attempt: it was stopped, or its question was closed without an answer.
type leftRun struct {
	run     string
	stopped bool
}

// leave lets a worker tell the server of an agent, and the observer if it was stopped, of a run.
func (r *Runner) leave(agent string, thread int64, run leftRun) {
	if r.Agents == nil { // it stops runs and makes none
		return
	}
	if _, ok := r.Agents.Profile(agent); ok {
		r.left.Store(thread, run)
		r.Work.Wake(work.Turns, agent, thread)
	}
}

// abandon tells an agent's server that nobody wants the answer of a run. The thread may have a later one, which goes on.
func (r *Runner) abandon(ctx context.Context, thread int64, profile Profile, run string) {
	worker, ok := profile.Agent.(WorksOn)
	if !ok {
		return
	}
	sessions, err := r.Runs.Sessions(ctx, thread, profile.ID)
	if err == nil {
		run, err = r.Runs.AgentID(ctx, thread, run)
	}
	if err != nil {
		r.Log.Warn("the agent is not told that its work is not wanted", "agent", profile.ID, "thread", thread, "err", err)
		return
	}
	worker.Abandon(ctx, run, sessions)
}

// verify cancels the run that this node works on in a thread if another node has ended it.
func (r *Runner) verify(ctx context.Context, thread int64) {
	g, ok := r.works.Load(thread)
	if !ok {
		return
	}
	run := g.(*going).run.ID
	if unfinished, err := r.Runs.UnfinishedRun(ctx, thread); err == nil && unfinished != run {
		g.(*going).stop(run)
	}
}

// Retry asks again for the messages of a failed run, whichever node works on the thread; see runs.RetryRun.
func (r *Runner) Retry(ctx context.Context, run string) (runs.Again, error) {
	again, err := r.Runs.RetryRun(ctx, run)
	if err != nil {
		return again, err
	}
	r.Work.Tell(again.Owner, work.Turns, again.Agent, again.Thread)
	r.Work.Wake(work.Turns, again.Agent, again.Thread)
	return again, nil
}
