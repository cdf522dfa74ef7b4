package ingest

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
)

// TestRefusalsAreLoggedOnceASecond proves that each entry counts the refusals since the
// one before.
func TestRefusalsAreLoggedOnceASecond(t *testing.T) {
	inBubble(t, func(h *harness) {
		var log []int64
		h.Work.Log = slog.New(logged{"others", func(_ slog.Level, others slog.Value) { log = append(log, others.Int64()) }})
		h.engine.refuses.Store(true)
		for n := range 30 { // for three seconds
			_, err := h.Accept(h.Context(), h.envelope(payload{ID: fmt.Sprint(n), Thread: "t"}))
			if !errors.Is(err, adapters.ErrBusy) {
				t.Errorf("error %v, want %v", err, adapters.ErrBusy)
			}
			advance(100 * time.Millisecond)
		}
		h.engine.refuses.Store(false)
		if diff := cmp.Diff([]int64{0, 9, 9}, log); diff != "" {
			t.Error(diff)
		}
	})
}

// TestTheRecoveryIsLogged proves that the next accept tells once how many refusals there were.
func TestTheRecoveryIsLogged(t *testing.T) {
	inBubble(t, func(h *harness) {
		var refused []int64
		h.Ingest.Log = slog.New(logged{"refused", func(_ slog.Level, n slog.Value) { refused = append(refused, n.Int64()) }})
		for round := range 2 {
			h.engine.refuses.Store(true)
			for n := range 3 {
				if _, err := h.Accept(h.Context(), h.envelope(payload{ID: fmt.Sprint(n), Thread: "t"})); err == nil {
					t.Error("the payload was accepted")
				}
			}
			h.engine.refuses.Store(false)
			h.accept(payload{ID: fmt.Sprint("of round ", round), Thread: "t"})
			h.accept(payload{ID: fmt.Sprint("again of round ", round), Thread: "t"})
		}
		if diff := cmp.Diff([]int64{3, 3}, refused); diff != "" {
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
			if err := h.Refusing(); (err != nil) != want {
				t.Errorf("%s: refusing is %v", when, err)
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
