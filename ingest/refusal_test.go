package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"parley/adapters"
)

// TestAStoreThatRefusesIsToldOnceASecond, and with how many others.
func TestAStoreThatRefusesIsToldOnceASecond(t *testing.T) {
	inHouse(t, func(h *house) {
		var words bytes.Buffer
		h.Ingest.Log = slog.New(slog.NewTextHandler(&words, nil))
		h.engine.refuses.Store(true)
		for n := range 30 { // for three seconds
			_, err := h.Accept(h.Context(), h.envelope(payload{ID: fmt.Sprint(n), Thread: "t"}))
			if !errors.Is(err, adapters.ErrBusy) {
				t.Errorf("error %v, want %v", err, adapters.ErrBusy)
			}
			<-time.After(100 * time.Millisecond)
		}
		h.engine.refuses.Store(false)
		if got := strings.Count(words.String(), "custody refused"); got != 3 || strings.Count(words.String(), "others=9") != 2 {
			t.Errorf("%d lines:\n%s", got, &words)
		}
	})
}

// TestARefusalSpeaksForTheStore until the store takes something, or nobody has
// asked it for a while.
func TestARefusalSpeaksForTheStore(t *testing.T) {
	inHouse(t, func(h *house) {
		refuse := func() {
			h.engine.refuses.Store(true)
			if _, err := h.Accept(h.Context(), h.envelope(payload{ID: "1", Thread: "t"})); err == nil {
				t.Error("it was taken")
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
		is(false, "after custody")
		refuse()
		<-time.After(refusingFor)
		is(false, "a while later")
	})
}
