package operator

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/config"
	"parley/ingest/event"
)

var logRoutes = []Route{
	{Pattern: "GET log", Role: config.RoleViewer, stream: func(s *Service, c *Call, w http.ResponseWriter) error {
		if err := s.needsLive("the log"); err != nil {
			return err
		}
		pick, err := logFilter(c)
		if err != nil {
			return err
		}
		return follow(s, c, w, &s.Live.Log.ring, pick)
	}},
}

// Record is one record of the log.
type Record struct {
	At      time.Time         `json:"at"`
	Level   string            `json:"level"`
	Message string            `json:"message"`
	Attrs   map[string]string `json:"attrs"`

	level slog.Level
}

// logFilter returns the filter of a request: a least level, and attributes with a value.
func logFilter(c *Call) (func(Record) bool, error) {
	attributes := []string{"workspace", "thread", "run", "agent"}
	if err := c.Known(append(attributes, "level", "after", "follow")...); err != nil {
		return nil, err
	}
	var least slog.Level
	if s := c.Query("level"); s != "" && least.UnmarshalText([]byte(s)) != nil {
		return nil, event.FieldErrors{{Field: "level", Message: "must be debug, info, warn or error"}}
	} else if s == "" {
		least = slog.LevelDebug
	}
	return func(r Record) bool {
		return r.level >= least && !slices.ContainsFunc(attributes, func(name string) bool {
			want := c.Query(name)
			return want != "" && r.Attrs[name] != want
		})
	}, nil
}

// Log keeps the newest 2,000 records of a process. The zero value is empty.
type Log struct{ ring ring[Record] }

// Newest returns the kept records of a level or above, the newest first, with their numbers: the first
// record of the process has number 1.
func (l *Log) Newest(least slog.Level) iter.Seq2[int64, Record] {
	records, last := l.ring.after(0, ringSize)
	return func(yield func(int64, Record) bool) {
		for i, r := range slices.Backward(records) {
			if r.level >= least && !yield(last-int64(len(records)-1-i), r) {
				return
			}
		}
	}
}

// Handler returns a handler that keeps the records that next handles, and those of level info and above.
func (l *Log) Handler(next slog.Handler) slog.Handler { return logHandler{log: l, next: next} }

// logHandler keeps the records of a logger with some attributes.
type logHandler struct {
	log   *Log
	next  slog.Handler
	attrs []slog.Attr // with the groups in their names
	group string      // the beginning of the names of further attributes
}

// Enabled implements slog.Handler.
func (h logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	kept := Record{At: r.Time.UTC(), Level: strings.ToLower(r.Level.String()), Message: event.Cut(r.Message, maxValue), Attrs: map[string]string{}, level: r.Level}
	for _, a := range h.attrs {
		put(kept.Attrs, "", a)
	}
	r.Attrs(func(a slog.Attr) bool {
		put(kept.Attrs, h.group, a)
		return true
	})
	h.log.ring.add(kept)
	if h.next.Enabled(ctx, r.Level) {
		return h.next.Handle(ctx, r)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.next, h.attrs = h.next.WithAttrs(attrs), slices.Clone(h.attrs)
	for _, a := range attrs {
		a.Key = h.group + a.Key
		h.attrs = append(h.attrs, a)
	}
	return h
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler {
	h.next, h.group = h.next.WithGroup(name), h.group+name+"."
	return h
}

// put adds an attribute under its name. A secret is its mask.
func put(to map[string]string, group string, a slog.Attr) {
	value := a.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		for _, one := range value.Group() {
			put(to, group+a.Key+".", one)
		}
		return
	}
	to[group+a.Key] = event.Cut(fmt.Sprint(value.Any()), maxValue)
}

// maxValue bounds a kept text of a record, in bytes.
const maxValue = 2000
