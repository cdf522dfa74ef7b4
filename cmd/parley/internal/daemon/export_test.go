package daemon

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"parley/adapters/web/payload"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
	"parley/ingest/schedule"
	"parley/ingest/work"
)

// Change records an edit or a delete of a message in a web thread. No client can send one
// today; the envelope is of another platform, so that intake leaves it to the caller.
func (d *Daemon) Change(ctx context.Context, workspace, thread string, seq int64, e event.Event) error {
	list, err := d.Journal.Messages.ThreadMessages(ctx, workspace, thread, messages.Page{After: seq - 1, Limit: 1})
	if err != nil {
		return err
	}
	e.Targets = []string{list[0].ExternalID}
	if m := e.Message; m != nil {
		m.ExternalID, m.Thread = list[0].ExternalID, payload.ThreadKey(workspace, thread)
		if m.Metadata, err = event.ReadMetadata(list[0].Metadata); err != nil {
			return err
		}
	}
	accepted, err := d.Journal.Envelopes.Accept(ctx, envelopes.AcceptRequest{
		Envelope: event.Envelope{Workspace: workspace, Platform: event.Slack, Transport: "api", ReceivedAt: d.now(), Body: []byte("{}")},
		Keys:     event.Keys{Kind: e.Kind, Dedupe: string(e.Kind) + " of " + e.Targets[0], Thread: payload.ThreadKey(workspace, thread)},
		Claim:    true,
	})
	if err != nil {
		return err
	}
	_, err = d.Journal.Recorder.Record(ctx, &accepted.Claim, record.Entry{
		Envelope: accepted.ID, Workspace: workspace, Event: e, Origin: messages.API,
		Decide: func(m *event.Message, _ record.Look) record.Decision {
			return record.Decision{Trigger: messages.TriggerPassive, Metadata: m.Metadata.Bytes()}
		},
	})
	return err
}

// Patterns returns the patterns of all routes, with those of the operator API.
func (d *Daemon) Patterns() (patterns []string) {
	for _, r := range d.routes(d.api()) {
		patterns = append(patterns, r.pattern)
	}
	for _, r := range operator.Routes() {
		patterns = append(patterns, r.FullPattern())
	}
	return patterns
}

// HasTurns reports whether the daemon has room for the turns of an agent of acme.
func (d *Daemon) HasTurns(agent string) bool { return d.Work.Room(work.Turns, agent, "acme") }

// ReloadAtStop reloads the configuration as at the time when the daemon stops.
func (d *Daemon) ReloadAtStop(ctx context.Context) {
	claim, stop := context.WithCancel(ctx)
	stop()
	d.reload(ctx, claim, ctx, new(sync.WaitGroup))
}

// Rows returns the number of rows of the tables that a message changes.
func (d *Daemon) Rows(ctx context.Context) (rows string, err error) {
	err = d.Journal.Engine().Read(ctx, func(tx storage.Tx) error {
		rows = ""
		for _, table := range []string{"threads", "messages", "envelopes", "attachments", "runs", "run_attempts", "run_events", "deliveries", "budgets", "operator_log"} {
			var n int64
			if _, err := tx.Row([]any{&n}, "SELECT count(*) FROM "+table); err != nil {
				return err
			}
			rows += fmt.Sprintf("%s %d ", table, n)
		}
		return nil
	})
	return rows, err
}

// Described returns the descriptions of all figures, also of those without a value yet.
func (d *Daemon) Described() (texts []string) {
	all := make(chan *prometheus.Desc)
	go func() { d.metrics.Registry.Describe(all); close(all) }()
	for one := range all {
		texts = append(texts, one.String())
	}
	return texts
}

// Schedules returns the component that takes the ticks of schedules.
func (d *Daemon) Schedules() *schedule.Service { return d.schedules }
