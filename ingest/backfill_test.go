package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/work"
)

// gaps is a Backfill that records its calls.
type gaps struct {
	mu       sync.Mutex
	threads  map[event.ThreadKey]bool // the threads that are behind
	refused  []string
	accepted []string
}

func (g *gaps) Behind(thread event.ThreadKey) bool { return g.threads[thread] }

func (g *gaps) Refused(channel string, retried bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = append(g.refused, fmt.Sprint(channel, " ", retried))
}

func (g *gaps) Accepted(channel string, retried bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.accepted = append(g.accepted, fmt.Sprint(channel, " ", retried))
}

// backfill configures the harness's workspace with a Backfill.
func (h *harness) backfill() *gaps {
	h.Helper()
	g := &gaps{threads: map[event.ThreadKey]bool{}}
	w := h.workspace("acme")
	w.Backfill = g
	h.configure(w)
	return g
}

// late is a payload from the backfill.
func (h *harness) late(p payload) event.Envelope {
	envelope := h.envelope(p)
	envelope.Transport = event.Backfilled
	return envelope
}

// TestALiveMessageIsRecordedAtOnce proves that messages are recorded in the order of
// arrival, also in a thread that is behind.
func TestALiveMessageIsRecordedAtOnce(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.backfill().threads["slack:acme:t"] = true
		h.work()
		message := func(id string) payload {
			return payload{ID: id, Thread: "t", Channel: "C1", Sender: "U1", Text: id}
		}
		h.result(h.accept(message("2")).ID)
		for _, id := range []string{"1", "2"} {
			if _, err := h.Accept(h.Context(), h.late(message(id))); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		var words []string
		for _, m := range h.thread("slack:acme:t") {
			words = append(words, m.Content+" "+string(m.Origin))
		}
		if diff := cmp.Diff([]string{"2 live", "1 late"}, words); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAThreadBehindDefersItsRun proves that the run does not begin with the record of its
// message, because missed messages come before it.
func TestAThreadBehindDefersItsRun(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.backfill().threads["slack:acme:t"] = true
		ctx, cancel := context.WithCancel(h.Context())
		var serving sync.WaitGroup
		serving.Go(func() {
			_ = h.scheduler.Serve(ctx, work.Queue{Kind: work.Turns, Agent: "helper", Slots: 1, Do: func(context.Context, *work.Claim) error { return nil }})
		})
		h.work()
		behind := h.send(payload{ID: "1", Thread: "t", Channel: "C1", Text: "hi", Mention: true})
		current := h.send(payload{ID: "2", Thread: "u", Channel: "C1", Text: "hi", Mention: true})
		if behind.Begun != nil || current.Begun == nil {
			t.Errorf("runs: %v in the thread that is behind, %v in the other", behind.Begun, current.Begun)
		}
		cancel()
		serving.Wait()
	})
}

// TestBackfillHearsOfLivePayloads proves that it hears of their first durable accept and
// of their refusal, but of no payload that it has handed over itself.
func TestBackfillHearsOfLivePayloads(t *testing.T) {
	inBubble(t, func(h *harness) {
		g := h.backfill()
		first, again := h.envelope(payload{ID: "1", Thread: "t", Channel: "C1"}), h.envelope(payload{ID: "2", Thread: "t", Channel: "C2"})
		refused := h.envelope(payload{ID: "6", Thread: "t", Channel: "C6"})
		again.Retried, refused.Retried = true, true
		for _, envelope := range []event.Envelope{first, first, again, again, h.late(payload{ID: "3", Thread: "t", Channel: "C3"})} {
			if _, err := h.Accept(h.Context(), envelope); err != nil {
				t.Fatal(err)
			}
		}
		h.engine.refuses.Store(true)
		for _, envelope := range []event.Envelope{h.envelope(payload{ID: "4", Thread: "t", Channel: "C4"}), refused, h.late(payload{ID: "5", Thread: "t", Channel: "C5"})} {
			if _, err := h.Accept(h.Context(), envelope); !errors.Is(err, adapters.ErrBusy) {
				t.Error(err)
			}
		}
		if diff := cmp.Diff([]string{"C1 false", "C2 true"}, g.accepted); diff != "" {
			t.Errorf("accepted:\n%s", diff)
		}
		if diff := cmp.Diff([]string{"C4 false", "C6 true"}, g.refused); diff != "" {
			t.Errorf("refused:\n%s", diff)
		}
	})
}

// TestADeleteWaitsForItsMessage proves that a delete waits as long as its message may
// arrive: during a gap of the channel, and while the message's own envelope is pending.
// Then the message triggers nothing.
func TestADeleteWaitsForItsMessage(t *testing.T) {
	message := payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "my password is hunter2", Mention: true}
	for name, c := range map[string]struct{ before, after func(h *harness) }{
		"a gap": {func(h *harness) {
			gap := event.Gap{Channel: "C1", From: time.Now(), Until: time.Now().Add(time.Second)}
			if err := h.journal.Threads.OpenGaps(h.Context(), "acme", []event.Gap{gap}, time.Time{}); err != nil {
				h.Fatal(err)
			}
		}, func(h *harness) {
			if _, err := h.Accept(h.Context(), h.late(message)); err != nil {
				h.Fatal(err)
			}
		}},
		"a pending envelope": {func(h *harness) {
			h.platform.slow[message.Text] = make(chan struct{})
			h.accept(message)
		}, func(h *harness) { close(h.platform.slow[message.Text]) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(h *harness) {
				h.work()
				advance(2 * time.Minute) // gaps may be opened in the first minute
				c.before(h)
				gone := h.accept(payload{Kind: event.KindDelete, ID: "1", Revision: "d", Channel: "C1"})
				advance(10 * time.Minute)
				h.pending(gone.ID)
				c.after(h)
				advance(10 * time.Second)
				if got := h.result(gone.ID); got.Disposition != event.Updated {
					t.Errorf("the delete: %+v", got.Result)
				}
				for _, m := range h.thread("slack:acme:t") {
					if m.DeletedAt.IsZero() || m.Content != "" {
						t.Errorf("stored: %+v", m)
					}
				}
			})
		})
	}
}

// TestAStoredMessageIsReadAgainWithoutAWrite: a store that takes no commits still knows it.
func TestAStoredMessageIsReadAgainWithoutAWrite(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.backfill()
		message := payload{ID: "1", Thread: "t", Channel: "C1"}
		first, err := h.Accept(h.Context(), h.envelope(message))
		if err != nil {
			t.Fatal(err)
		}
		h.engine.refuses.Store(true)
		again, err := h.Accept(h.Context(), h.late(message))
		if err != nil || !again.Duplicate || again.ID != first.ID {
			t.Errorf("%+v, %v", again, err)
		}
	})
}
