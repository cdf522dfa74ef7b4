package ingest

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/ingest/event"
)

// behind are the channels in which earlier messages are still to be read.
type behind struct {
	channels map[string]bool
	refused  int
}

func (b *behind) Aside(channel string) (func(), bool) { return func() {}, b.channels[channel] }

func (b *behind) Refused() { b.refused++ }

// late is a payload as catch-up hands it over.
func (h *house) late(p payload) event.Envelope {
	envelope := h.envelope(p)
	envelope.Transport = event.CatchUp
	return envelope
}

func (h *house) release(channels ...string) {
	h.Helper()
	which := func(channel string) bool { return slices.Contains(channels, channel) }
	if err := h.Release(h.Context(), event.Slack, "acme", which); err != nil {
		h.Fatal(err)
	}
	synctest.Wait()
}

// words are a thread's messages with their origins.
func (h *house) words() (words []string) {
	h.Helper()
	for _, m := range h.thread("slack:acme:t") {
		words = append(words, m.Content+" "+string(m.Origin))
	}
	return words
}

// TestWhatComesInAfterAGapIsLetInBehindIt, in the order in which it came. What was kept aside
// and read from the platform, too, has the place at which it was read.
func TestWhatComesInAfterAGapIsLetInBehindIt(t *testing.T) {
	inHouse(t, func(h *house) {
		b := &behind{channels: map[string]bool{"C1": true}}
		w := h.workspace("acme")
		w.Gaps = b
		h.configure(w)
		h.work()
		message := func(id string) payload {
			return payload{ID: id, Thread: "t", Channel: "C1", Sender: "U1", Text: id}
		}
		for _, id := range []string{"2", "5", "4"} {
			if receipt := h.accept(message(id)); !receipt.Waits || receipt.Duplicate {
				t.Errorf("%s: %+v", id, receipt)
			}
		}
		if !h.accept(message("4")).Duplicate {
			t.Error("the same payload was kept aside twice")
		}
		elsewhere := h.accept(payload{ID: "9", Thread: "u", Channel: "C2", Sender: "U1", Text: "9"})
		h.fate(elsewhere.ID)
		for _, id := range []string{"1", "2", "3"} {
			if receipt, err := h.Accept(h.Context(), h.late(message(id))); err != nil || receipt.Duplicate {
				t.Errorf("%s: %+v, %v", id, receipt, err)
			}
		}
		synctest.Wait()
		h.release("C2")
		want := []string{"1 late", "2 late", "3 late"}
		if diff := cmp.Diff(want, h.words()); diff != "" {
			t.Errorf("before it is let in (-want +got):\n%s", diff)
		}
		h.release("C1")
		h.release("C1")
		if diff := cmp.Diff(append(want, "5 live", "4 live"), h.words()); diff != "" {
			t.Errorf("afterwards (-want +got):\n%s", diff)
		}
	})
}

// TestWhatBeginsAThreadWaitsForNothing, wherever something is still to be read.
func TestWhatBeginsAThreadWaitsForNothing(t *testing.T) {
	inHouse(t, func(h *house) {
		w := h.workspace("acme")
		w.Gaps = &behind{channels: map[string]bool{"C1": true}}
		h.configure(w)
		h.work()
		h.fate(h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "1", Opens: true}).ID)
		if receipt := h.accept(payload{ID: "2", Thread: "t", Channel: "C1", Sender: "U1", Text: "2"}); !receipt.Waits {
			t.Errorf("%+v", receipt)
		}
		if diff := cmp.Diff([]string{"1 live"}, h.words()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestARefusalIsTold, but for what catch-up itself hands over: that tries again.
func TestARefusalIsTold(t *testing.T) {
	inHouse(t, func(h *house) {
		b := &behind{}
		w := h.workspace("acme")
		w.Gaps = b
		h.configure(w)
		h.engine.refuses.Store(true)
		for _, envelope := range []event.Envelope{h.envelope(payload{ID: "1", Thread: "t"}), h.late(payload{ID: "2", Thread: "t"})} {
			if _, err := h.Accept(h.Context(), envelope); !errors.Is(err, adapters.ErrBusy) {
				t.Errorf("%v", err)
			}
		}
		if b.refused != 1 {
			t.Errorf("%d refusals were told", b.refused)
		}
	})
}
