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

// TestCustodyIsBoundedInBytes: beyond 64 MiB that wait, the platform hears at once
// that it must send again. What it gives up on is read later.
func TestCustodyIsBoundedInBytes(t *testing.T) {
	inHouse(t, func(h *house) {
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
			t.Errorf("one byte more: %v after %v", err, time.Since(begun))
		}
		if !slices.Equal(b.refused, []string{"C9"}) {
			t.Errorf("backfill was told of refusals in %v", b.refused)
		}
		close(h.engine.stuck)
		for range 4 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if _, err := h.Accept(h.Context(), event.Envelope{Workspace: "acme", Platform: event.Slack, Body: []byte("y")}); err != nil {
			t.Errorf("once there is room: %v", err)
		}
	})
}

// TestCustodyWaitsTwoSeconds for a store that hangs, and no longer.
func TestCustodyWaitsTwoSeconds(t *testing.T) {
	inHouse(t, func(h *house) {
		h.engine.stuck = make(chan struct{})
		begun := time.Now()
		_, err := h.Accept(h.Context(), h.envelope(payload{ID: "1", Thread: "t"}))
		if !errors.Is(err, adapters.ErrBusy) || time.Since(begun) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// TestCustodyGuessesNoThread: where the store can't tell a channel's type, the
// envelope is not taken, since its thread hangs on it.
func TestCustodyGuessesNoThread(t *testing.T) {
	inHouse(t, func(h *house) {
		h.engine.blind.Store(true)
		typeless := payload{ID: "1", Thread: "t", Channel: "G7", Sender: "U1"}
		if _, err := h.Accept(h.Context(), h.envelope(typeless)); !errors.Is(err, adapters.ErrBusy) {
			t.Errorf("error %v, want %v", err, adapters.ErrBusy)
		}
		h.engine.blind.Store(false)
		if receipt := h.accept(typeless); receipt.Duplicate {
			t.Error("it was in custody all the same")
		}
	})
}

// TestNoCustodyForAnUnknownWorkspace: there is nobody who could read it.
func TestNoCustodyForAnUnknownWorkspace(t *testing.T) {
	inHouse(t, func(h *house) {
		if _, err := h.Accept(h.Context(), event.Envelope{Workspace: "other", Platform: event.Slack}); err == nil || errors.Is(err, adapters.ErrBusy) {
			t.Errorf("error %v", err)
		}
	})
}

// TestTheSamePayloadIsADuplicate, whether it has been recorded or not.
func TestTheSamePayloadIsADuplicate(t *testing.T) {
	inHouse(t, func(h *house) {
		p := payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "once"}
		first := h.accept(p)
		if again := h.accept(p); !again.Duplicate || again.ID != first.ID {
			t.Errorf("before it is recorded: %+v", again)
		}
		h.work()
		h.fate(first.ID)
		if again := h.accept(p); !again.Duplicate || again.ID != first.ID {
			t.Errorf("after it was recorded: %+v", again)
		}
		if got := len(h.thread("slack:acme:t")); got != 1 {
			t.Errorf("the thread has %d messages", got)
		}
	})
}

// TestAStoreInTroubleLosesNothing: what was acknowledged is recorded when the
// store is back, without being counted as its failure; nothing new is
// acknowledged meanwhile.
func TestAStoreInTroubleLosesNothing(t *testing.T) {
	inHouse(t, func(h *house) {
		taken := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "taken"})
		h.engine.refuses.Store(true)
		h.work()
		pass(30 * time.Second)
		if _, err := h.Accept(h.Context(), h.envelope(payload{ID: "2", Thread: "t"})); !errors.Is(err, adapters.ErrBusy) {
			t.Errorf("error %v, want %v", err, adapters.ErrBusy)
		}
		h.pending(taken.ID)
		h.engine.refuses.Store(false)
		pass(2 * time.Second)
		if got := h.fate(taken.ID); got.Disposition != event.Stored {
			t.Errorf("fate %+v", got.Fate)
		}
	})
}

// TestWait returns an envelope's end when it has come, and gives up with its caller.
func TestWait(t *testing.T) {
	inHouse(t, func(h *house) {
		h.platform.slow["slow"] = make(chan struct{})
		h.work()
		receipt := h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "slow"})
		ctx, cancel := context.WithTimeout(h.Context(), 2*time.Second)
		defer cancel()
		if settled, err := h.Wait(ctx, receipt.ID); err != nil || settled != nil {
			t.Errorf("while it is worked on: %+v, %v", settled, err)
		}
		close(h.platform.slow["slow"])
		for _, when := range []string{"as it ends", "after it has ended"} {
			if settled, err := h.Wait(h.Context(), receipt.ID); err != nil || settled == nil || settled.Message.Content != "slow" {
				t.Errorf("%s: %+v, %v", when, settled, err)
			}
		}
		if len(h.waiters) != 0 {
			t.Errorf("%d waiters are left behind", len(h.waiters))
		}
	})
}
