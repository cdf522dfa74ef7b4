package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
)

// refusalLog records how many other refusals each log entry reports.
type refusalLog []int64

func (l *refusalLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *refusalLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *refusalLog) WithGroup(string) slog.Handler            { return l }

func (l *refusalLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "others" {
			*l = append(*l, a.Value.Int64())
		}
		return true
	})
	return nil
}

// TestRefusalsAreLoggedOnceASecond proves that each entry counts the refusals since the
// one before.
func TestRefusalsAreLoggedOnceASecond(t *testing.T) {
	inBubble(t, func(h *harness) {
		var log refusalLog
		h.Ingest.Log = slog.New(&log)
		h.engine.refuses.Store(true)
		for n := range 30 { // for three seconds
			_, err := h.Accept(h.Context(), h.envelope(payload{ID: fmt.Sprint(n), Thread: "t"}))
			if !errors.Is(err, adapters.ErrBusy) {
				t.Errorf("error %v, want %v", err, adapters.ErrBusy)
			}
			advance(100 * time.Millisecond)
		}
		h.engine.refuses.Store(false)
		if diff := cmp.Diff(refusalLog{0, 9, 9}, log); diff != "" {
			t.Error(diff)
		}
	})
}

// TestARefusalCountsForAWhile proves that the store counts as refusing until it accepts a
// payload, or until no refusal has come for a while.
func TestARefusalCountsForAWhile(t *testing.T) {
	inBubble(t, func(h *harness) {
		refuse := func() {
			h.engine.refuses.Store(true)
			if _, err := h.Accept(h.Context(), h.envelope(payload{ID: "1", Thread: "t"})); err == nil {
				t.Error("the payload was accepted")
			}
			h.engine.refuses.Store(false)
		}
		is := func(want bool, when string) {
			t.Helper()
			if h.Refusing() != want {
				t.Errorf("%s: refusing is %v", when, !want)
			}
		}
		is(false, "at the start")
		refuse()
		is(true, "after a refusal")
		h.accept(payload{ID: "2", Thread: "t"})
		is(false, "after an accept")
		refuse()
		advance(refusingFor)
		is(false, "a while later")
	})
}
