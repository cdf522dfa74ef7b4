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
		t.daemon.step(operator.Step{Workspace: envelope.Workspace, What: operator.StepReceived, MS: time.Since(begun).Milliseconds(), Detail: envelope.Transport})
	}
	return receipt, err
}

// step tells operators of a step that has ended now.
func (d *Daemon) step(s operator.Step) {
	s.At = d.now().UTC()
	d.steps.Add(s)
}

// Processed implements ingest.Observer.
func (d *Daemon) Processed(workspace string, _ int64, r record.Result) {
	d.metrics.envelopes.WithLabelValues(workspace, string(r.Kind), string(r.Disposition), r.Reason).Inc()
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
	d.health.attempted(run.Agent, r, d.now().UTC())
	d.metrics.attempted(run, r)
	s := operator.Step{
		Workspace: run.Workspace, Thread: string(run.ThreadKey), What: operator.StepAttempt, Agent: run.Agent, MS: r.Took.Milliseconds(), Detail: string(r.Outcome),
	}
	d.step(s)
	if r.Outcome == turn.Answered {
		s.What, s.MS, s.Detail = operator.StepAnswered, max(0, d.now().Sub(run.BegunAt).Milliseconds()), run.ID
		d.step(s)
	}
}

// Delivery implements deliver.Observer.
func (d *Daemon) Delivery(workspace string, state outbox.State) {
	d.metrics.delivered(workspace, state)
	d.step(operator.Step{Workspace: workspace, What: operator.StepDelivery, Detail: string(state)})
}
