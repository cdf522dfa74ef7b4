package daemon

import (
	"context"
	"net/http"
	"time"

	"parley/adapters"
	"parley/adapters/web/bridge"
	"parley/adapters/web/files"
	"parley/adapters/web/payload"
	"parley/assembly/turn"
	"parley/cmd/parley/internal/figures"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
)

// timed measures the time of each durable accept.
type timed struct {
	*ingest.Ingest
	metrics *figures.Metrics
	storage files.Storage
}

var _ bridge.Storage = timed{}

// Keep implements bridge.Storage.
func (t timed) Keep(ctx context.Context, w http.ResponseWriter, workspace, sender string, b *payload.Body) error {
	return t.storage.Keep(ctx, w, workspace, sender, b)
}

// Accept implements adapters.Inbox.
func (t timed) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	begun := time.Now()
	receipt, err := t.Ingest.Accept(ctx, envelope)
	if err == nil {
		t.metrics.Acknowledged(envelope.Workspace, begun)
	}
	return receipt, err
}

// observer sees what the pipeline does. Whoever waits for the end of an attempt hears of it first.
type observer struct {
	*figures.Watch
	daemon *Daemon
}

// RunEnded implements turn.Observer.
func (o observer) RunEnded(run *runs.Run, r turn.Report) {
	o.daemon.offered.Delete(run.ID)
	o.daemon.workstreams.RunEnded(run.ThreadKey)
	o.Watch.RunEnded(run, r)
}
