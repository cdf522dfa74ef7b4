package figures

import (
	"context"
	"log/slog"
	"time"

	"parley/adapters/deliver"
	"parley/assembly/turn"
	"parley/cmd/parley/internal/operator"
	"parley/cmd/parley/internal/traces"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/schedules"
	"parley/ingest/schedule"
)

// Profiles knows the agents of the configuration in use.
type Profiles interface {
	Profile(id string) (turn.Profile, bool)
}

// Workspaces knows the workspaces of the configuration in use.
type Workspaces interface {
	// Posts reports whether the answers in a workspace are posts on a platform. Otherwise callers of our own API read them.
	Posts(workspace string) bool
}

// Watch sees what happens to messages, runs, ticks and deliveries, and measures, logs and tells it.
type Watch struct {
	Metrics    *Metrics
	Steps      *operator.Steps
	Workspaces Workspaces
	Profiles   Profiles
	Traces     *traces.Traces // nil for none
	Log        *slog.Logger
	Now        func() time.Time

	health health
}

var (
	_ ingest.Observer   = (*Watch)(nil)
	_ turn.Observer     = (*Watch)(nil)
	_ schedule.Observer = (*Watch)(nil)
	_ deliver.Observer  = (*Watch)(nil)
)

// step tells operators of a step that has ended now.
func (w *Watch) step(s operator.Step) {
	s.At = w.Now().UTC()
	w.Steps.Add(s)
}

// Accepted implements ingest.Observer.
func (w *Watch) Accepted(envelope *event.Envelope, thread event.ThreadKey) {
	s := operator.Step{Workspace: envelope.Workspace, Thread: string(thread), What: operator.StepReceived, Detail: envelope.Transport}
	if !envelope.ReceivedAt.IsZero() {
		s.MS = max(0, w.Now().Sub(envelope.ReceivedAt).Milliseconds())
	}
	w.step(s)
}

// Processed implements ingest.Observer.
func (w *Watch) Processed(p *envelopes.Pending, r record.Result) {
	workspace := p.Envelope.Workspace
	w.Traces.Recorded(p, r)
	reason := r.Reason
	if r.Disposition == event.Duplicate {
		reason = "duplicate"
	}
	w.Metrics.envelopes.WithLabelValues(workspace, string(r.Kind), string(r.Disposition), reason).Inc()
	s := operator.Step{Workspace: workspace, Thread: string(r.Thread), What: operator.StepDecided, Detail: decision(r)}
	if r.Message != nil {
		s.Agent = r.Message.Agent
	}
	w.step(s)
	if !r.TurnAt.IsZero() {
		s.What, s.MS, s.Detail = operator.StepTurn, max(0, r.TurnAt.Sub(w.Now()).Milliseconds()), "waits for further messages"
		w.step(s)
	}
}

// decision returns what was decided about a payload, such as "message, for the agent (mention)".
func decision(r record.Result) string {
	what := map[event.Disposition]string{
		event.Updated: "changed its message", event.Duplicate: "known already", event.Ignored: "ignored", event.Dead: "can't be read: a dead letter",
	}[r.Disposition]
	switch {
	case r.Disposition == event.Stored && r.Trigger == messages.TriggerRun:
		what = "for the agent"
	case r.Disposition == event.Stored:
		what = "context"
	}
	if r.Reason != "" && string(r.Trigger) != r.Reason {
		what += " (" + r.Reason + ")"
	}
	return string(r.Kind) + ", " + what
}

// RunBegins implements turn.Observer.
func (w *Watch) RunBegins(ctx context.Context, run *runs.Run, now time.Time) context.Context {
	return w.Traces.RunBegins(ctx, run, now)
}

// WaitingRunEnded implements turn.Observer.
func (w *Watch) WaitingRunEnded(run string, outcome turn.Outcome) {
	w.Traces.WaitingRunEnded(run, outcome)
}

// RunEnded implements turn.Observer.
func (w *Watch) RunEnded(run *runs.Run, r turn.Report) {
	if result := ticked[r.Outcome]; result != "" && run.IsScheduled() {
		w.TickEnded(run.Workspace, result)
	}
	w.attempted(run, r)
	w.Traces.RunEnded(run, r)
	w.readable(run, r)
	s := operator.Step{
		Workspace: run.Workspace, Thread: string(run.ThreadKey), What: operator.StepAttempt, Agent: run.Agent, MS: r.Took.Milliseconds(), Detail: string(r.Outcome),
	}
	w.step(s)
	if r.Outcome == turn.Answered {
		s.What, s.MS, s.Detail = operator.StepAnswered, max(0, w.Now().Sub(run.BegunAt).Milliseconds()), run.ID
		w.step(s)
	}
	w.Metrics.attempted(run, r) // at last: a reader that finds the attempt counted also finds the rest
}

// ticked has the result of a schedule's tick for the outcome of its run, if that is the end.
var ticked = map[turn.Outcome]schedules.Result{
	turn.Answered: schedules.Posted, turn.Quiet: schedules.Quiet, turn.Dropped: schedules.Quiet, turn.Failed: schedules.Failed, turn.Canceled: schedules.Failed,
}

// TickEnded implements schedule.Observer.
func (w *Watch) TickEnded(workspace string, result schedules.Result) {
	w.Metrics.ticks.WithLabelValues(workspace, string(result)).Inc()
}

// Sending implements deliver.Observer.
func (w *Watch) Sending(ctx context.Context, d *outbox.Delivery) context.Context {
	return w.Traces.Sending(ctx, d)
}

// Delivery implements deliver.Observer.
func (w *Watch) Delivery(sent *outbox.Delivery, state outbox.State) {
	w.Traces.Delivered(sent, state, w.Now())
	if !sent.IsRead() {
		return
	}
	w.Metrics.delivered(sent.Workspace, state, w.Now().Sub(sent.CreatedAt))
	w.step(operator.Step{
		Workspace: sent.Workspace, Thread: string(sent.ThreadKey), What: operator.StepDelivery, MS: max(0, w.Now().Sub(sent.CreatedAt).Milliseconds()), Detail: string(state),
	})
}

// attempted tells the operator of an attempt: one line for an answered run, an ERROR for one that is given
// up, and a line when its agent begins to fail and when it works again.
func (w *Watch) attempted(run *runs.Run, r turn.Report) {
	log := w.Log.With("workspace", run.Workspace, "thread", string(run.ThreadKey), "agent", run.Agent, "run", run.ID)
	switch r.Outcome {
	case turn.Answered:
		log.Info("a run is answered", "waited", wait(run), "first_token", r.FirstToken, "took", r.Took, "tokens_in", r.Usage.TokensIn, "tokens_out", r.Usage.TokensOut)
	case turn.Failed:
		said := "a run is given up; its people are told"
		if run.IsScheduled() {
			said = "the run of a schedule is given up"
		}
		log.Error(said, "attempts", run.Attempts+1, "since", w.Now().Sub(run.BegunAt), "err", r.Err)
	}
	began, recovered := w.health.attempted(run.Agent, r, w.Now().UTC())
	w.Metrics.isFailing(run.Agent, w.health.of(run.Agent).Failing)
	switch {
	case began:
		w.Log.Warn("an agent begins to fail", "agent", run.Agent, "err", r.Err)
	case recovered:
		w.Log.Info("an agent works again", "agent", run.Agent)
	}
}

// wait returns how long the last message of a run waited for its beginning.
func wait(run *runs.Run) time.Duration {
	if len(run.Messages) == 0 {
		return 0
	}
	return max(0, run.BegunAt.Sub(run.Messages[len(run.Messages)-1].CreatedAt))
}

// Answered implements deliver.Observer.
func (w *Watch) Answered(workspace string, asked time.Time) {
	w.Metrics.answers.WithLabelValues(workspace).Observe(max(0, w.Now().Sub(asked).Seconds()))
}

// readable measures an answer without deliveries: the callers of our own API can read it now.
func (w *Watch) readable(run *runs.Run, r turn.Report) {
	if r.Outcome == turn.Answered && len(run.Messages) > 0 && !w.Workspaces.Posts(run.Workspace) {
		w.Answered(run.Workspace, run.AskedAt())
	}
}

// Agent returns how an agent does on this node, with the form of requests that its server has taught it.
func (w *Watch) Agent(id string) operator.AgentHealth {
	health := w.health.of(id)
	if profile, _ := w.Profiles.Profile(id); profile.Agent != nil {
		if learner, ok := profile.Agent.(turn.Learner); ok {
			health.Form = learner.Learnt()
		}
	}
	return health
}
