// Package traces makes the spans of messages, runs, tools and deliveries from the reports of a node to its observers, and exports them by OTLP.
//
// A span is made when its thing has ended, from times and ids that are known then. Package trace derives its id, so that no span needs to
// be begun, and each node finds the same parent. A nil *Traces records nothing.
package traces

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/trace"
)

// Store finds the traces of runs that this node does not remember. *listing.Listing implements it.
type Store interface {
	FirstOf(ctx context.Context, run string) (listing.Traced, error)
	FindRun(ctx context.Context, id string) (listing.Run, error)
	TasksOf(ctx context.Context, run string) ([]listing.Traced, error)
	WorkstreamOf(ctx context.Context, thread event.ThreadKey) (run string, task listing.Traced, err error)
}

// Options configure Traces.
type Options struct {
	Traces config.Traces
	// Version is that of the program, and Node the id of the node.
	Version, Node string
	Store         Store
	// Agent describes an agent of the configuration in use.
	Agent func(id string) Agent
	Log   *slog.Logger
	Now   func() time.Time
}

// Agent is an agent as its spans name it.
type Agent struct {
	Kind  string
	Model string // empty if the agent is no model
	// Launches says that it may launch workstreams.
	Launches bool
}

// Traces records the spans of a node. Its methods never wait for the collector.
type Traces struct {
	Options
	provider *sdk.TracerProvider
	exporter *exporter
	tracer   api.Tracer

	mu     sync.Mutex
	places map[string]trace.Place // the spans of turns by the id of their run
	order  []string               // of the runs in places, the oldest one first
}

// remembered bounds the number of runs whose trace is remembered.
const remembered = 4096

// storeTime bounds a look into the store.
const storeTime = 2 * time.Second

// origin returns the origin of the trace of a message.
func (t *Traces) origin(m listing.Traced) trace.Origin {
	return trace.Of(m.UUID, m.ExternalID, m.Metadata, t.Traces.Sample)
}

func tracedOf(m *messages.Message) listing.Traced {
	return listing.Traced{UUID: m.UUID, ExternalID: m.ExternalID, Metadata: m.Metadata}
}

// placeIn returns the place of the span of a run in the trace of its message.
func placeIn(o trace.Origin, run string) trace.Place { return o.At("run", run) }

// known returns the place of a run that this node remembers.
func (t *Traces) known(run string) (p trace.Place, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok = t.places[run]
	return p, ok
}

// remember remembers the place of a run.
func (t *Traces) remember(run string, p trace.Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.places[run]; ok {
		return
	}
	if len(t.order) == remembered {
		delete(t.places, t.order[0])
		t.order = t.order[1:]
	}
	t.places[run], t.order = p, append(t.order, run)
}

// placeOf returns the place of a run; zero if it is not known. Only a run that another node has begun, or this one long ago, needs the
// store.
func (t *Traces) placeOf(ctx context.Context, run string) trace.Place {
	p, ok := t.known(run)
	if ok || run == "" {
		return p
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if first, err := t.Store.FirstOf(ctx, run); err == nil {
		p = placeIn(t.origin(first), run)
		t.remember(run, p)
	}
	return p
}

// RunBegins returns the context of an attempt of a run.
func (t *Traces) RunBegins(ctx context.Context, run *runs.Run, now time.Time) context.Context {
	if t == nil {
		return ctx
	}
	if _, ok := t.known(run.ID); !ok && run.Fresh && len(run.Messages) > 0 { // an older run may have lost its first message
		t.remember(run.ID, placeIn(t.origin(tracedOf(&run.Messages[0])), run.ID))
	}
	if p := t.placeOf(ctx, run.ID); !p.IsZero() {
		return trace.With(ctx, attempt(p, now))
	}
	return ctx
}

// attempt returns the place of an attempt of a run that began at a time.
func attempt(run trace.Place, begun time.Time) trace.Place {
	return run.Below("attempt", begun.UTC().Format(time.RFC3339Nano))
}

// Sending returns the context of a call about a delivery.
func (t *Traces) Sending(ctx context.Context, d *outbox.Delivery) context.Context {
	if t == nil {
		return ctx
	}
	if p := t.placeOf(ctx, d.Run); !p.IsZero() {
		return trace.With(ctx, p.Below("delivery", d.Key))
	}
	return ctx
}

// Handler takes the place of each caller in a trace from the headers of its request.
func (t *Traces) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if values := r.Header.Values(trace.Header); len(values) == 1 { // of several, none is the caller's place
			if p, ok := trace.Parse(values[0]); ok {
				r = r.WithContext(trace.With(r.Context(), p))
			}
		}
		next.ServeHTTP(w, r)
	})
}
