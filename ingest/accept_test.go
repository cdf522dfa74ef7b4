package ingest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// TestAcceptBoundsItsMemory proves that Accept refuses an envelope at once if more than
// 64 MiB would wait, and that backfill hears of the refusal.
func TestAcceptBoundsItsMemory(t *testing.T) {
	inBubble(t, func(h *harness) {
		b := h.backfill()
		h.engine.stuck = make(chan struct{})
		big := event.Envelope{Workspace: "acme", Platform: event.Slack, Body: make([]byte, 16<<20)}
		answers := make(chan error, 4)
		for i := range 4 {
			body := big
			body.Body = append([]byte{byte('0' + i)}, make([]byte, 16<<20-1)...)
			go func() {
				_, err := h.Accept(h.Context(), body)
				answers <- err
			}()
		}
		synctest.Wait()
		begun := time.Now()
		if _, err := h.Accept(h.Context(), h.envelope(payload{ID: "9", Thread: "t", Channel: "C9"})); !errors.Is(err, adapters.ErrBusy) || time.Since(begun) != 0 {
			t.Errorf("above the bound: %v after %v", err, time.Since(begun))
		}
		if !slices.Equal(b.refused, []string{"C9 false"}) {
			t.Errorf("refusals reported to backfill: %v", b.refused)
		}
		close(h.engine.stuck)
		for range 4 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if _, err := h.Accept(h.Context(), event.Envelope{Workspace: "acme", Platform: event.Slack, Body: []byte("y")}); err != nil {
			t.Errorf("below the bound: %v", err)
		}
	})
}

// TestAcceptWaitsTwoSeconds proves that Accept waits two seconds for a store that hangs,
// and no longer.
func TestAcceptWaitsTwoSeconds(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.engine.stuck = make(chan struct{})
		begun := time.Now()
		_, err := h.Accept(h.Context(), h.envelope(payload{ID: "1", Thread: "t"}))
		if !errors.Is(err, adapters.ErrBusy) || time.Since(begun) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// TestAcceptGuessesNoThread proves that Accept refuses an envelope if the store cannot
// read the channel's type, because the thread depends on the type.
func TestAcceptGuessesNoThread(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.engine.blind.Store(true)
		typeless := payload{ID: "1", Thread: "t", Channel: "G7", Sender: "U1"}
		if _, err := h.Accept(h.Context(), h.envelope(typeless)); !errors.Is(err, adapters.ErrBusy) {
			t.Errorf("error %v, want %v", err, adapters.ErrBusy)
		}
		h.engine.blind.Store(false)
		if receipt := h.accept(typeless); receipt.Duplicate {
			t.Error("the refused envelope was stored")
		}
	})
}

// TestAcceptRefusesAnUnknownWorkspace proves that the refusal is not ErrBusy.
func TestAcceptRefusesAnUnknownWorkspace(t *testing.T) {
	inBubble(t, func(h *harness) {
		if _, err := h.Accept(h.Context(), event.Envelope{Workspace: "other", Platform: event.Slack}); err == nil || errors.Is(err, adapters.ErrBusy) {
			t.Errorf("error %v", err)
		}
	})
}

// TestTheSamePayloadIsADuplicate proves this before and after the payload is recorded.
func TestTheSamePayloadIsADuplicate(t *testing.T) {
	inBubble(t, func(h *harness) {
		p := payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "once"}
		first := h.accept(p)
		if again := h.accept(p); !again.Duplicate || again.ID != first.ID {
			t.Errorf("before the record: %+v", again)
		}
		h.work()
		h.result(first.ID)
		if again := h.accept(p); !again.Duplicate || again.ID != first.ID {
			t.Errorf("after the record: %+v", again)
		}
		if got := len(h.thread("slack:acme:t")); got != 1 {
			t.Errorf("the thread has %d messages", got)
		}
	})
}

// TestAStoreFailureLosesNothing proves that an acknowledged envelope is recorded when the
// store works again, and that the outage does not count as a failure of the envelope.
// Accept acknowledges nothing during the outage.
func TestAStoreFailureLosesNothing(t *testing.T) {
	inBubble(t, func(h *harness) {
		accepted := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "accepted"})
		h.engine.refuses.Store(true)
		h.work()
		advance(30 * time.Second)
		if _, err := h.Accept(h.Context(), h.envelope(payload{ID: "2", Thread: "t"})); !errors.Is(err, adapters.ErrBusy) {
			t.Errorf("error %v, want %v", err, adapters.ErrBusy)
		}
		h.pending(accepted.ID)
		h.engine.refuses.Store(false)
		advance(2 * time.Second)
		if got := h.result(accepted.ID); got.Disposition != event.Stored {
			t.Errorf("result %+v", got.Result)
		}
	})
}

// TestWait proves that Wait returns an envelope's result when it is recorded, and gives
// up when its ctx ends.
func TestWait(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.platform.slow["slow"] = make(chan struct{})
		h.work()
		receipt := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "slow"})
		ctx, cancel := context.WithTimeout(h.Context(), 2*time.Second)
		defer cancel()
		if settled, err := h.Wait(ctx, receipt.ID); err != nil || settled != nil {
			t.Errorf("before the result: %+v, %v", settled, err)
		}
		close(h.platform.slow["slow"])
		for _, when := range []string{"at the result", "after the result"} {
			if settled, err := h.Wait(h.Context(), receipt.ID); err != nil || settled == nil || settled.Message.Content != "slow" {
				t.Errorf("%s: %+v, %v", when, settled, err)
			}
		}
	})
}

// TestAMessageOfAnIdleThreadTakesOneTransaction proves that a message is recorded by the transaction of its
// accept if its thread is idle, and by intake if a name must be looked up.
func TestAMessageOfAnIdleThreadTakesOneTransaction(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		h.accept(payload{ID: "0", Thread: "s", Channel: "C1", Sender: "U1"}) // makes the secret of the threads' ids
		for i, p := range []payload{{ID: "1", Thread: "t", Channel: "C1", Sender: "U1"}, {ID: "2", Thread: "t", Channel: "C1", Sender: "U1", Count: true}} {
			synctest.Wait()
			before := h.engine.writes.Load()
			receipt := h.accept(p)
			if result := h.result(receipt.ID); result.Disposition != event.Stored {
				t.Errorf("message %s: %+v", p.ID, result)
			}
			if took := h.engine.writes.Load() - before; (took == 1) != (i == 0) {
				t.Errorf("message %s took %d transactions", p.ID, took)
			}
		}
	})
}
