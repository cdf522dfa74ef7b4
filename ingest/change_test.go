package ingest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
	"parley/ingest/journal"
)

// hints are the run hints of a stored message.
func hints(t *testing.T, m *journal.Message) map[string]any {
	t.Helper()
	var all, some map[string]any
	if err := json.Unmarshal(m.Metadata, &all); err != nil {
		t.Fatal(err)
	}
	some = map[string]any{}
	for _, key := range []string{"sender_id", "passive", "trigger_rag", "recipient_id"} {
		if value, ok := all[key]; ok {
			some[key] = value
		}
	}
	return some
}

// TestAnEditThatAddsAMentionRunsOnce, and rewrites the hints.
func TestAnEditThatAddsAMentionRunsOnce(t *testing.T) {
	inHouse(t, func(h *house) {
		h.work()
		h.said(payload{ID: "1", Text: "tomorrow?"})
		edit := payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Thread: "t", Text: "@bot tomorrow?", Mention: true}
		got := h.said(edit)
		if got.Disposition != event.Updated || got.Trigger != journal.TriggerRun || got.Reason != event.ReasonMention || got.TurnAt.IsZero() {
			t.Errorf("the edit: %+v, %s at %v", got.Fate, got.Trigger, got.TurnAt)
		}
		want := map[string]any{"sender_id": "slack:U1", "passive": false, "trigger_rag": true, "recipient_id": "bot:helper"}
		if diff := cmp.Diff(want, hints(t, got.Message)); diff != "" {
			t.Error(diff)
		}
		edit.Revision = "r2"
		if again := h.said(edit); !again.TurnAt.IsZero() {
			t.Error("a second edit asked for a run again")
		}
	})
}

// TestAnEditWithoutItsSenderIsJudgedAsTheStoredOne: what its payload leaves out,
// the message has.
func TestAnEditWithoutItsSenderIsJudgedAsTheStoredOne(t *testing.T) {
	inHouse(t, func(h *house) {
		h.settings.Policy.AllowUsers = []string{"U1"}
		h.work()
		h.said(payload{ID: "1", Text: "tomorow?"})
		got := h.fate(h.accept(payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Thread: "t", Text: "tomorrow?"}).ID)
		if got.Disposition != event.Updated || got.Message.Content != "tomorrow?" {
			t.Fatalf("the edit: %+v", got.Fate)
		}
		want := map[string]any{"sender_id": "slack:U1", "passive": true, "trigger_rag": false}
		if diff := cmp.Diff(want, hints(t, got.Message)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAChangeIsJudgedByItsThreadsChannel, where its payload names none.
func TestAChangeIsJudgedByItsThreadsChannel(t *testing.T) {
	inHouse(t, func(h *house) {
		h.settings.Policy.PassiveMemory = false
		open := h.settings
		open.Policy.PassiveMemory = true
		open.Policy.AllowUsers = []string{"U1"}
		h.channels["C1"] = open
		h.work()
		h.said(payload{ID: "1", Text: "a"})
		if got := h.fate(h.accept(payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Text: "b"}).ID); got.Disposition != event.Updated || got.Trigger != journal.TriggerPassive {
			t.Errorf("the edit: %+v", got.Fate)
		}
		for sender, want := range map[string]event.Fate{
			"U1": {Disposition: event.Updated}, "U2": *event.Ignore(event.ReasonUserRefused),
		} {
			if got := h.fate(h.accept(payload{Kind: event.KindReaction, ID: "1", Revision: sender, Sender: sender}).ID); got.Fate != want {
				t.Errorf("a reaction of %s: %+v, want %+v", sender, got.Fate, want)
			}
		}
	})
}

// TestOnlyNoted: a message that policy keeps nothing of is known all the same, so
// that an edit which adds a mention runs.
func TestOnlyNoted(t *testing.T) {
	inHouse(t, func(h *house) {
		h.settings.Policy.PassiveMemory = false
		h.work()
		if got := h.said(payload{ID: "1", Text: "a secret"}); got.Fate != *event.Ignore(event.ReasonNotAddressed) || got.Message.Content != "" {
			t.Errorf("noted: %+v", got.Fate)
		}
		got := h.said(payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Thread: "t", Text: "@bot hello", Mention: true})
		if got.Disposition != event.Updated || got.Trigger != journal.TriggerRun || got.Message.Content != "@bot hello" {
			t.Errorf("the edit: %+v, %s", got.Fate, got.Trigger)
		}
	})
}

// TestAChangeWaitsForItsMessage, and is applied when that comes.
func TestAChangeWaitsForItsMessage(t *testing.T) {
	inHouse(t, func(h *house) {
		h.work()
		edit := h.accept(payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Channel: "C1", Sender: "U1", Text: "after"})
		reaction := h.accept(payload{Kind: event.KindReaction, ID: "1", Sender: "U2"})
		if !edit.Waits || !reaction.Waits {
			t.Fatalf("receipts %+v, %+v", edit, reaction)
		}
		pass(50 * time.Second)
		h.pending(edit.ID)
		h.said(payload{ID: "1", Text: "before"})
		for _, id := range []int64{edit.ID, reaction.ID} {
			if got := h.fate(id); got.Disposition != event.Updated {
				t.Errorf("envelope %d: %+v", id, got.Fate)
			}
		}
		m := h.thread("slack:acme:t")[0]
		if m.Content != "after" || len(m.Reactions) != 1 {
			t.Errorf("the message is %q with %d reactions", m.Content, len(m.Reactions))
		}
	})
}

// TestAChangeWhoseMessageNeverComes is ignored after a minute, by whichever way
// it waits.
func TestAChangeWhoseMessageNeverComes(t *testing.T) {
	inHouse(t, func(h *house) {
		h.work()
		nowhere := h.accept(payload{Kind: event.KindDelete, ID: "1"})
		inThread := h.accept(payload{Kind: event.KindDelete, ID: "2", Thread: "t", Channel: "C1"})
		pass(58 * time.Second)
		h.pending(nowhere.ID)
		h.pending(inThread.ID)
		pass(10 * time.Second)
		for _, id := range []int64{nowhere.ID, inThread.ID} {
			if got := h.fate(id); got.Fate != *event.Ignore(event.ReasonUnknownMessage) || got.Kind != event.KindDelete {
				t.Errorf("envelope %d: %+v of kind %s", id, got.Fate, got.Kind)
			}
		}
	})
}

// TestTurnsHearOfWhatIsRecorded: of what makes a turn due, and of what was only kept.
func TestTurnsHearOfWhatIsRecorded(t *testing.T) {
	inHouse(t, func(h *house) {
		h.settings.Coalesce, h.settings.CoalesceMax = 500*time.Millisecond, 2500*time.Millisecond
		h.work()
		now := time.Now()
		h.said(payload{ID: "1", Text: "kept"})
		h.said(payload{ID: "2", Text: "@bot", Mention: true})
		if len(h.signals) != 2 || !h.signals[0].TurnAt.IsZero() || !h.signals[1].TurnAt.Equal(now.Add(500*time.Millisecond)) {
			t.Errorf("signals %+v", h.signals)
		}
	})
}
