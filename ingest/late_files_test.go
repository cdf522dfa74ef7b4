package ingest

import (
	"testing"
	"time"

	"parley/ingest/journal/record"
)

// TestAQuestionWaitsForItsFiles checks that the turn of a message waits for files that come later, and
// for those of a message that will ask when its files have come, but not for other people's.
func TestAQuestionWaitsForItsFiles(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		begun := time.Now()
		if got := h.send(payload{ID: "1", Text: "@bot what is this?", Mention: true, Awaits: true}); !got.TurnAt.Equal(begun.Add(record.FilesWait)) {
			t.Errorf("a question: %v", got.TurnAt.Sub(begun))
		}
		if got := h.send(payload{ID: "2", Thread: "u", Text: "look", Awaits: true}); !got.TurnDue.IsZero() {
			t.Errorf("a message that asks nothing: %v", got.TurnDue.Sub(begun))
		}
		h.settings.Coalesce, h.settings.CoalesceMax = time.Second, time.Second
		h.send(payload{ID: "3", Thread: "v", Text: "@bot what is this?", Mention: true})
		if got := h.send(payload{ID: "4", Thread: "v", Text: "look", Awaits: true}); !got.TurnDue.Equal(begun.Add(time.Second)) {
			t.Errorf("beside another person's picture: %v", got.TurnDue.Sub(begun))
		}
		if got := h.send(payload{ID: "5", Thread: "v", Mention: true, Awaits: true}); !got.TurnDue.Equal(begun.Add(record.FilesWait)) {
			t.Errorf("before a picture of the question: %v", got.TurnDue.Sub(begun))
		}
	})
}
