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

// gaps is a Backfill that keeps what it is told.
type gaps struct {
	mu       sync.Mutex
	threads  map[event.ThreadKey]bool // that are behind
	refused  []string
	accepted []string
}

func (g *gaps) Behind(thread event.ThreadKey) bool { return g.threads[thread] }

func (g *gaps) Refused(channel string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = append(g.refused, channel)
}

func (g *gaps) Accepted(channel string, retried bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.accepted = append(g.accepted, fmt.Sprint(channel, " ", retried))
}

// backfill configures the house's workspace with a Backfill.
func (h *house) backfill() *gaps {
	h.Helper()
	g := &gaps{threads: map[event.ThreadKey]bool{}}
	w := h.workspace("acme")
	w.Backfill = g
	h.configure(w)
	return g
}

// late is a payload as backfill hands it over.
func (h *house) late(p payload) event.Envelope {
	envelope := h.envelope(p)
	envelope.Transport = event.Backfilled
	return envelope
}

// TestALiveMessageIsRecordedAtOnce, in the order of arrival, wherever messages are missing.
func TestALiveMessageIsRecordedAtOnce(t *testing.T) {
	inHouse(t, func(h *house) {
		h.backfill().threads["slack:acme:t"] = true
		h.work()
		message := func(id string) payload {
			return payload{ID: id, Thread: "t", Channel: "C1", Sender: "U1", Text: id}
		}
		h.fate(h.accept(message("2")).ID)
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

// TestARunOfAThreadBehindDoesNotBeginWithItsMessage: missed messages come before it.
func TestARunOfAThreadBehindDoesNotBeginWithItsMessage(t *testing.T) {
	inHouse(t, func(h *house) {
		h.backfill().threads["slack:acme:t"] = true
		ctx, cancel := context.WithCancel(h.Context())
		var serving sync.WaitGroup
		serving.Go(func() {
			_ = h.scheduler.Serve(ctx, work.Queue{Kind: work.Turns, Agent: "helper", Slots: 1, Do: func(context.Context, *work.Claim) error { return nil }})
		})
		h.work()
		behind := h.said(payload{ID: "1", Thread: "t", Channel: "C1", Text: "hi", Mention: true})
		whole := h.said(payload{ID: "2", Thread: "u", Channel: "C1", Text: "hi", Mention: true})
		if behind.Begun != nil || whole.Begun == nil {
			t.Errorf("begun: %v in the thread that is behind, %v in the other", behind.Begun, whole.Begun)
		}
		cancel()
		serving.Wait()
	})
}

// TestBackfillHearsOfLivePayloads: of their first durable accept and of their refusal, but
// of nothing that it has handed over itself.
func TestBackfillHearsOfLivePayloads(t *testing.T) {
	inHouse(t, func(h *house) {
		g := h.backfill()
		first, again := h.envelope(payload{ID: "1", Thread: "t", Channel: "C1"}), h.envelope(payload{ID: "2", Thread: "t", Channel: "C2"})
		again.Retried = true
		for _, envelope := range []event.Envelope{first, first, again, again, h.late(payload{ID: "3", Thread: "t", Channel: "C3"})} {
			if _, err := h.Accept(h.Context(), envelope); err != nil {
				t.Fatal(err)
			}
		}
		h.engine.refuses.Store(true)
		for _, envelope := range []event.Envelope{h.envelope(payload{ID: "4", Thread: "t", Channel: "C4"}), h.late(payload{ID: "5", Thread: "t", Channel: "C5"})} {
			if _, err := h.Accept(h.Context(), envelope); !errors.Is(err, adapters.ErrBusy) {
				t.Error(err)
			}
		}
		if diff := cmp.Diff([]string{"C1 false", "C2 true"}, g.accepted); diff != "" {
			t.Errorf("accepted:\n%s", diff)
		}
		if diff := cmp.Diff([]string{"C4"}, g.refused); diff != "" {
			t.Errorf("refused:\n%s", diff)
		}
	})
}

// TestADeleteWaitsAsLongAsItsMessageMayCome: during a gap of its channel, and while the
// message's own envelope is pending. Then the message asks for nothing.
func TestADeleteWaitsAsLongAsItsMessageMayCome(t *testing.T) {
	message := payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "my password is hunter2", Mention: true}
	for name, c := range map[string]struct{ before, after func(h *house) }{
		"a gap": {func(h *house) {
			gap := event.Gap{Channel: "C1", From: time.Now(), Until: time.Now().Add(time.Second)}
			if err := h.journal.OpenGaps(h.Context(), "acme", []event.Gap{gap}, time.Time{}); err != nil {
				h.Fatal(err)
			}
		}, func(h *house) {
			if _, err := h.Accept(h.Context(), h.late(message)); err != nil {
				h.Fatal(err)
			}
		}},
		"a pending envelope": {func(h *house) {
			h.platform.slow[message.Text] = make(chan struct{})
			h.accept(message)
		}, func(h *house) { close(h.platform.slow[message.Text]) }},
	} {
		t.Run(name, func(t *testing.T) {
			inHouse(t, func(h *house) {
				h.work()
				pass(2 * time.Minute) // gaps may be opened for a minute after the start
				c.before(h)
				gone := h.accept(payload{Kind: event.KindDelete, ID: "1", Revision: "d", Channel: "C1"})
				pass(10 * time.Minute)
				h.pending(gone.ID)
				c.after(h)
				pass(10 * time.Second)
				if got := h.fate(gone.ID); got.Disposition != event.Updated {
					t.Errorf("the delete: %+v", got.Fate)
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
