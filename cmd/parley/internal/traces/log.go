package traces

import (
	"context"
	"log/slog"
)

// Logger returns a logger whose records about a run, by the key run, also name its trace.
func (t *Traces) Logger(log *slog.Logger) *slog.Logger {
	if t == nil {
		return log
	}
	return slog.New(handler{log.Handler(), t, false})
}

// handler adds the id of a trace to the records about a run.
type handler struct {
	slog.Handler
	traces *Traces
	named  bool // the trace was named
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if !h.named {
		var id slog.Attr
		r.Attrs(func(a slog.Attr) bool {
			id = h.traceOf(a)
			return id.Key == ""
		})
		if id.Key != "" {
			r = r.Clone()
			r.AddAttrs(id)
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if id := h.traceOf(a); id.Key != "" && !h.named {
			return handler{h.Handler.WithAttrs(append(attrs[:len(attrs):len(attrs)], id)), h.traces, true}
		}
	}
	return handler{h.Handler.WithAttrs(attrs), h.traces, h.named}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.traces, true}
}

// traceOf returns the attribute with the trace of a run that an attribute names; the zero value for none.
func (h handler) traceOf(a slog.Attr) slog.Attr {
	if a.Key != "run" || a.Value.Kind() != slog.KindString {
		return slog.Attr{}
	}
	if p, ok := h.traces.known(a.Value.String()); ok && p.Sampled {
		return slog.String("trace", p.ID())
	}
	return slog.Attr{}
}
