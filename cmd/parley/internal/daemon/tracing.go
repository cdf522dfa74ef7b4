package daemon

import (
	"context"
	"fmt"
	"time"

	"parley/adapters/agent"
	"parley/cmd/parley/internal/traces"
	"parley/config"
	"parley/ingest/journal"
)

// openTraces opens the traces of this node, if the configuration has any.
func (d *Daemon) openTraces(ctx context.Context, c *config.Config, j *journal.Journal) (err error) {
	settings, on := c.Traces()
	if !on {
		return nil
	}
	d.traces, err = traces.Open(ctx, traces.Options{
		Traces: settings, Version: d.version, Node: d.node, Store: j.Listing, Agent: d.tracedAgent, Log: d.log, Now: d.now,
	})
	if err != nil {
		return fmt.Errorf("open the exporter of traces: %w", err)
	}
	d.log = d.traces.Logger(d.log)
	return nil
}

// closeTraces sends the spans that wait. Lost spans are no failure of the stop.
func (d *Daemon) closeTraces(ctx context.Context, within time.Duration) {
	if d.traces == nil {
		return
	}
	if err := d.phase(ctx, "traces", within, d.traces.Close); err != nil {
		d.log.Warn("the collector of traces did not take the last spans in time; they are lost", "collector", d.traces.Traces.URL, "err", err)
	}
}

// tracedAgent describes an agent of the configuration in use for its spans.
func (d *Daemon) tracedAgent(id string) (of traces.Agent) {
	for _, a := range d.Setup().Config.Agents {
		if a.ID != id {
			continue
		}
		of.Kind, of.Launches = a.Kind, len(a.Workstreams.Agents) > 0
		if m, ok := a.Config.(agent.Modelled); ok {
			of.Model = m.ModelName()
		}
	}
	return of
}
