package daemon

import (
	"context"
	"strings"
	"time"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/cmd/parley/internal/operator"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/schedules"
)

// timed measures the time of each durable accept.
type timed struct {
	*ingest.Ingest
	daemon *Daemon
}

// Accept implements adapters.Inbox.
func (t timed) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	begun := time.Now()
	receipt, err := t.Ingest.Accept(ctx, envelope)
	if err == nil {
		t.daemon.metrics.acknowledged(envelope.Workspace, begun)
	}
	return receipt, err
}

// step tells operators of a step that has ended now.
func (d *Daemon) step(s operator.Step) {
	s.At = d.now().UTC()
	d.steps.Add(s)
}

// Accepted implements ingest.Observer.
func (d *Daemon) Accepted(envelope *event.Envelope, thread event.ThreadKey) {
	s := operator.Step{Workspace: envelope.Workspace, Thread: string(thread), What: operator.StepReceived, Detail: envelope.Transport}
	if !envelope.ReceivedAt.IsZero() {
		s.MS = max(0, d.now().Sub(envelope.ReceivedAt).Milliseconds())
	}
	d.step(s)
}

// Processed implements ingest.Observer.
func (d *Daemon) Processed(workspace string, _ int64, r record.Result) {
	reason := r.Reason
	if r.Disposition == event.Duplicate {
		reason = "duplicate"
	}
	d.metrics.envelopes.WithLabelValues(workspace, string(r.Kind), string(r.Disposition), reason).Inc()
	s := operator.Step{Workspace: workspace, Thread: string(r.Thread), What: operator.StepDecided, Detail: words(string(r.Kind), string(r.Disposition), string(r.Trigger), r.Reason)}
	if r.Message != nil {
		s.Agent = r.Message.Agent
	}
	d.step(s)
	if !r.TurnAt.IsZero() {
		s.What, s.MS, s.Detail = operator.StepTurn, max(0, r.TurnAt.Sub(d.now()).Milliseconds()), "waits for further messages"
		d.step(s)
	}
}

// words joins the words that are not empty.
func words(list ...string) string { return strings.Join(strings.Fields(strings.Join(list, " ")), " ") }

// RunEnded implements turn.Observer.
func (d *Daemon) RunEnded(run *runs.Run, r turn.Report) {
	d.offered.Delete(run.ID)
	d.workstreams.RunEnded(run.ThreadKey)
	if result := ticked[r.Outcome]; result != "" && run.IsScheduled() {
		d.TickEnded(run.Workspace, result)
	}
	d.attempted(run, r)
	d.readable(run, r)
	s := operator.Step{
		Workspace: run.Workspace, Thread: string(run.ThreadKey), What: operator.StepAttempt, Agent: run.Agent, MS: r.Took.Milliseconds(), Detail: string(r.Outcome),
	}
	d.step(s)
	if r.Outcome == turn.Answered {
		s.What, s.MS, s.Detail = operator.StepAnswered, max(0, d.now().Sub(run.BegunAt).Milliseconds()), run.ID
		d.step(s)
	}
	d.metrics.attempted(run, r) // at last: a reader that finds the attempt counted also finds the rest
}

// ticked has the result of a schedule's tick for the outcome of its run, if that is the end.
var ticked = map[turn.Outcome]schedules.Result{
	turn.Answered: schedules.Posted, turn.Quiet: schedules.Quiet, turn.Dropped: schedules.Quiet, turn.Failed: schedules.Failed, turn.Canceled: schedules.Failed,
}

// TickEnded implements schedule.Observer.
func (d *Daemon) TickEnded(workspace string, result schedules.Result) {
	d.metrics.ticks.WithLabelValues(workspace, string(result)).Inc()
}

// Delivery implements deliver.Observer.
func (d *Daemon) Delivery(sent *outbox.Delivery, state outbox.State) {
	d.metrics.delivered(sent.Workspace, state, d.now().Sub(sent.CreatedAt))
	d.step(operator.Step{
		Workspace: sent.Workspace, Thread: string(sent.ThreadKey), What: operator.StepDelivery, MS: max(0, d.now().Sub(sent.CreatedAt).Milliseconds()), Detail: string(state),
	})
}

// attempted tells the operator of an attempt: one line for an answered run, an ERROR for one that is given
// up, and a line when its agent begins to fail and when it works again.
func (d *Daemon) attempted(run *runs.Run, r turn.Report) {
	log := d.log.With("workspace", run.Workspace, "thread", string(run.ThreadKey), "agent", run.Agent, "run", run.ID)
	switch r.Outcome {
	case turn.Answered:
		log.Info("a run is answered", "waited", wait(run), "first_token", r.FirstToken, "took", r.Took, "tokens_in", r.Usage.TokensIn, "tokens_out", r.Usage.TokensOut)
	case turn.Failed:
		said := "a run is given up; its people are told"
		if run.IsScheduled() {
			said = "the run of a schedule is given up"
		}
		log.Error(said, "attempts", run.Attempts+1, "since", d.now().Sub(run.BegunAt), "err", r.Err)
	}
	began, recovered := d.health.attempted(run.Agent, r, d.now().UTC())
	d.metrics.isFailing(run.Agent, d.health.of(run.Agent).Failing)
	switch {
	case began:
		d.log.Warn("an agent begins to fail", "agent", run.Agent, "err", r.Err)
	case recovered:
		d.log.Info("an agent works again", "agent", run.Agent)
	}
}

// wait returns how long the last message of a run waited for its beginning.
func wait(run *runs.Run) time.Duration {
	if len(run.Messages) == 0 {
		return 0
	}
	return max(0, run.BegunAt.Sub(run.Messages[len(run.Messages)-1].CreatedAt))
}
