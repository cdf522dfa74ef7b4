package ingest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// resultLog records the level of each log entry about an envelope.
type resultLog []slog.Level

func (l *resultLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *resultLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *resultLog) WithGroup(string) slog.Handler            { return l }

func (l *resultLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "envelope" {
			*l = append(*l, r.Level)
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
		var log resultLog
		h.Ingest.Log = slog.New(&log)
		h.send(payload{ID: "1", Text: "hello"})
		h.send(payload{ID: "2", Trouble: unreadable})
		h.send(payload{ID: "3", Trouble: panicsInKeys})
		if diff := cmp.Diff(resultLog{slog.LevelDebug, slog.LevelWarn, slog.LevelWarn}, log); diff != "" {
			t.Error(diff)
		}
	})
}
