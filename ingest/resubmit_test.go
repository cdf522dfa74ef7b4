package ingest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/storage"
)

// resubmit resubmits a letter and returns its new result.
func (h *harness) resubmit(letter int64) (event.Result, string) {
	h.Helper()
	h.mu.Lock()
	h.results = nil
	h.mu.Unlock()
	if err := h.Resubmit(h.Context(), letter); err != nil {
		h.Fatal(err)
	}
	result := h.result(letter)
	return result.Result, string(result.Trigger)
}

// rewrite changes the stored payload of an envelope, as if the program could read it now.
func (h *harness) rewrite(envelope int64, p payload) {
	h.Helper()
	h.sql(`UPDATE envelopes SET body = $2 WHERE id = $1`, envelope, h.envelope(p).Body)
}

// TestResubmit proves that a dead letter is recorded once as soon as the program can read it, whichever
// part of it could not be read.
func TestResubmit(t *testing.T) {
	for name, trouble := range map[string]string{"the event": unreadable, "the keys": panicsInKeys} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(h *harness) {
				h.work()
				p := payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "hi", Mention: true, Trouble: trouble}
				letter := h.accept(p).ID
				first := h.result(letter)
				if again, _ := h.resubmit(letter); first.Disposition != event.Dead || again.Error != first.Error {
					h.Errorf("%+v, and again %+v", first, again)
				}
				p.Trouble = ""
				h.rewrite(letter, p)
				if result, trigger := h.resubmit(letter); result.Disposition != event.Stored || trigger != "run" {
					h.Errorf("resubmitted: %+v, %s", result, trigger)
				}
				if err := h.Resubmit(h.Context(), letter); !errors.Is(err, envelopes.ErrSettled) {
					h.Errorf("resubmitted again: %v", err)
				}
				if got := strings.Join(contents(h.thread("slack:acme:t")), " "); got != "hi" {
					h.Errorf("the thread is %q", got)
				}
			})
		})
	}
}

// TestAResubmittedMessageHasItsPresentAge proves that a person gets no answer hours later.
func TestAResubmittedMessageHasItsPresentAge(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		p := payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "hi", Mention: true, Trouble: unreadable, SentAt: time.Now().UnixMilli()}
		letter := h.accept(p).ID
		h.result(letter)
		advance(h.settings.Policy.MaxAge + time.Second)
		p.Trouble = ""
		h.rewrite(letter, p)
		if result, trigger := h.resubmit(letter); result.Reason != event.ReasonTooOld || trigger != "passive" {
			h.Errorf("%+v, %s", result, trigger)
		}
	})
}

// TestResubmitRefuses proves that each letter that cannot be resubmitted has its own error.
func TestResubmitRefuses(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		letter := h.accept(payload{ID: "1", Trouble: panicsInKeys}).ID
		if err := h.Resubmit(h.Context(), letter+1); !errors.Is(err, storage.ErrNotFound) {
			h.Errorf("an unknown one: %v", err)
		}
		h.sql(`UPDATE envelopes SET body = substr(body, 1, 0) WHERE id = $1`, letter)
		if err := h.Resubmit(h.Context(), letter); !errors.Is(err, envelopes.ErrRemoved) {
			h.Errorf("one without a body: %v", err)
		}
		h.configure(h.workspace("other"))
		if err := h.Resubmit(h.Context(), letter); err == nil || !strings.Contains(err.Error(), "acme") {
			h.Errorf("one of a removed workspace: %v", err)
		}
	})
}
