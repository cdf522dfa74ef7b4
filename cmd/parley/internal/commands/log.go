package commands

import (
	"context"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/lmittmann/tint"
	"github.com/mattn/go-isatty"

	"parley/config"
)

// newLogger logs in one of the formats text, tint and json. With the format auto it logs
// tint, which has colours for people, if w is a terminal, and otherwise JSON for programs.
func newLogger(format string, w *os.File, level slog.Leveler) *slog.Logger {
	switch {
	case format == "text":
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
	case format == "tint", format == "auto" && isatty.IsTerminal(w.Fd()):
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, NoColor: !colored(), ReplaceAttr: rounded}))
	}
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: milliseconds}))
}

// colored reports whether the environment, which --color changes, allows colours.
func colored() bool {
	return os.Getenv(forceColor) != "" || os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// milliseconds makes a duration a number with its unit in the key, such as "took_ms":9.413, so that a log store can compute with it.
func milliseconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.Float64(a.Key+"_ms", float64(a.Value.Duration().Microseconds())/1000)
	}
	return a
}

// rounded makes a duration short for people.
func rounded(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(took(a.Value.Duration()))
	}
	return a
}

// liveLogger returns a logger to w, and a function that applies other settings to it and to all
// loggers made from it.
func liveLogger(w *os.File, settings config.Log) (log *slog.Logger, apply func(config.Log)) {
	h := liveHandler{new(atomic.Pointer[slog.Handler]), func(present slog.Handler) slog.Handler { return present }}
	apply = func(c config.Log) { h.present.Store(new(newLogger(c.Format, w, c.Severity()).Handler())) }
	apply(settings)
	return slog.New(h), apply
}

// liveHandler passes each record to the present handler.
type liveHandler struct {
	present *atomic.Pointer[slog.Handler]
	derive  func(present slog.Handler) slog.Handler // adds the attributes and groups
}

// Enabled implements slog.Handler.
func (h liveHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return (*h.present.Load()).Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h liveHandler) Handle(ctx context.Context, r slog.Record) error {
	return h.derive(*h.present.Load()).Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h liveHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return liveHandler{h.present, func(present slog.Handler) slog.Handler { return h.derive(present).WithAttrs(attrs) }}
}

// WithGroup implements slog.Handler.
func (h liveHandler) WithGroup(name string) slog.Handler {
	return liveHandler{h.present, func(present slog.Handler) slog.Handler { return h.derive(present).WithGroup(name) }}
}
