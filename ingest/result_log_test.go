package ingest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// logged notes the level and the value of each log entry's attribute with a key.
type logged struct {
	key  string
	note func(slog.Level, slog.Value)
}

func (l logged) Enabled(context.Context, slog.Level) bool { return true }
func (l logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l logged) WithGroup(string) slog.Handler            { return l }

func (l logged) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == l.key {
			l.note(r.Level, a.Value)
		}
		return true
	})
	return nil
}

// TestEachResultIsLoggedOnce proves that the log warns of a dead letter, also of one whose
// keys could not be read.
func TestEachResultIsLoggedOnce(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		var log []slog.Level
		h.Ingest.Log = slog.New(logged{"envelope", func(level slog.Level, _ slog.Value) { log = append(log, level) }})
		h.send(payload{ID: "1", Text: "hello"})
		h.send(payload{ID: "2", Trouble: unreadable})
		h.send(payload{ID: "3", Trouble: panicsInKeys})
		if diff := cmp.Diff([]slog.Level{slog.LevelDebug, slog.LevelWarn, slog.LevelWarn}, log); diff != "" {
			t.Error(diff)
		}
	})
}
