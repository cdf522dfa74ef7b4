package ingest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// hints returns the run hints of a stored message.
func hints(t *testing.T, m *messages.Message) map[string]any {
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

// TestAnEditThatAddsAMentionRunsOnce also proves that the edit rewrites the hints.
func TestAnEditThatAddsAMentionRunsOnce(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		h.send(payload{ID: "1", Text: "tomorrow?"})
		edit := payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Thread: "t", Text: "@bot tomorrow?", Mention: true}
		got := h.send(edit)
		if got.Disposition != event.Updated || got.Trigger != messages.TriggerRun || got.Reason != event.ReasonMention || got.TurnAt.IsZero() {
			t.Errorf("the edit: %+v, %s at %v", got.Result, got.Trigger, got.TurnAt)
		}
		want := map[string]any{"sender_id": "slack:U1", "passive": false, "trigger_rag": true, "recipient_id": "bot:helper"}
		if diff := cmp.Diff(want, hints(t, got.Message)); diff != "" {
			t.Error(diff)
		}
		edit.Revision = "r2"
		if again := h.send(edit); !again.TurnAt.IsZero() {
			t.Error("a second edit triggered a run again")
		}
	})
}

// TestAnEditWithoutSenderKeepsTheStoredOne proves that the stored message completes an
// edit whose payload has no sender.
func TestAnEditWithoutSenderKeepsTheStoredOne(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.Policy.AllowUsers = []string{"U1"}
		h.work()
		h.send(payload{ID: "1", Text: "tomorow?"})
		got := h.result(h.accept(payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Thread: "t", Text: "tomorrow?"}).ID)
		if got.Disposition != event.Updated || got.Message.Content != "tomorrow?" {
			t.Fatalf("the edit: %+v", got.Result)
		}
		want := map[string]any{"sender_id": "slack:U1", "passive": true, "trigger_rag": false}
		if diff := cmp.Diff(want, hints(t, got.Message)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAChangeWithoutChannelUsesItsThreads proves that the settings of the thread's
// channel judge a change whose payload names no channel.
func TestAChangeWithoutChannelUsesItsThreads(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.Policy.PassiveMemory = false
		open := h.settings
		open.Policy.PassiveMemory = true
		open.Policy.AllowUsers = []string{"U1"}
		h.channels["C1"] = open
		h.work()
		h.send(payload{ID: "1", Text: "a"})
		if got := h.result(h.accept(payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Text: "b"}).ID); got.Disposition != event.Updated || got.Trigger != messages.TriggerPassive {
			t.Errorf("the edit: %+v", got.Result)
		}
		for sender, want := range map[string]event.Result{
			"U1": {Disposition: event.Updated}, "U2": *event.Ignore(event.ReasonUserRefused),
		} {
			if got := h.result(h.accept(payload{Kind: event.KindReaction, ID: "1", Revision: sender, Sender: sender}).ID); got.Result != want {
				t.Errorf("a reaction of %s: %+v, want %+v", sender, got.Result, want)
			}
		}
	})
}

// TestANotedMessageCanBeEdited proves that the journal knows a message whose content
// policy does not store, so an edit that adds a mention triggers a run.
func TestANotedMessageCanBeEdited(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.Policy.PassiveMemory = false
		h.work()
		if got := h.send(payload{ID: "1", Text: "a secret"}); got.Result != *event.Ignore(event.ReasonNotAddressed) || got.Message.Content != "" {
			t.Errorf("noted: %+v", got.Result)
		}
		got := h.send(payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Thread: "t", Text: "@bot hello", Mention: true})
		if got.Disposition != event.Updated || got.Trigger != messages.TriggerRun || got.Message.Content != "@bot hello" {
			t.Errorf("the edit: %+v, %s", got.Result, got.Trigger)
		}
	})
}

// TestAChangeWaitsForItsMessage proves that an early change is applied when its message
// arrives.
func TestAChangeWaitsForItsMessage(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		edit := h.accept(payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Channel: "C1", Sender: "U1", Text: "after"})
		reaction := h.accept(payload{Kind: event.KindReaction, ID: "1", Sender: "U2"})
		if !edit.Waits || !reaction.Waits {
			t.Fatalf("receipts %+v, %+v", edit, reaction)
		}
		advance(50 * time.Second)
		h.pending(edit.ID)
		h.send(payload{ID: "1", Text: "before"})
		for _, id := range []int64{edit.ID, reaction.ID} {
			if got := h.result(id); got.Disposition != event.Updated {
				t.Errorf("envelope %d: %+v", id, got.Result)
			}
		}
		m := h.thread("slack:acme:t")[0]
		if m.Content != "after" || len(m.Reactions) != 1 {
			t.Errorf("the message is %q with %d reactions", m.Content, len(m.Reactions))
		}
	})
}

// TestAChangeThatWaitedComesBeforeLaterOnes proves that the last edit remains, even if the message
// and the edits are read from the store together.
func TestAChangeThatWaitedComesBeforeLaterOnes(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.accept(payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Channel: "C1", Sender: "U1", Text: "first edit"})
		h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "before"})
		last := h.accept(payload{Kind: event.KindEdit, ID: "1", Revision: "r2", Thread: "t", Channel: "C1", Sender: "U1", Text: "last edit"})
		h.work()
		h.result(last.ID)
		if got := h.thread("slack:acme:t")[0].Content; got != "last edit" {
			t.Errorf("the message is %q", got)
		}
	})
}

// TestAChangeWithoutAMessageIsIgnored proves that it waits a minute, with and without a
// known thread.
func TestAChangeWithoutAMessageIsIgnored(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		threadless := h.accept(payload{Kind: event.KindDelete, ID: "1"})
		inThread := h.accept(payload{Kind: event.KindDelete, ID: "2", Thread: "t", Channel: "C1"})
		advance(58 * time.Second)
		h.pending(threadless.ID)
		h.pending(inThread.ID)
		advance(10 * time.Second)
		for _, id := range []int64{threadless.ID, inThread.ID} {
			if got := h.result(id); got.Result != *event.Ignore(event.ReasonUnknownMessage) || got.Kind != event.KindDelete {
				t.Errorf("envelope %d: %+v of kind %s", id, got.Result, got.Kind)
			}
		}
	})
}

// TestTurnsHearOfEachRecord proves that a passive message is reported too, without a due
// turn.
func TestTurnsHearOfEachRecord(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.Coalesce, h.settings.CoalesceMax = 500*time.Millisecond, 2500*time.Millisecond
		h.work()
		now := time.Now()
		h.send(payload{ID: "1", Text: "passive"})
		h.send(payload{ID: "2", Text: "@bot", Mention: true})
		if len(h.signals) != 2 || !h.signals[0].TurnAt.IsZero() || !h.signals[1].TurnAt.Equal(now.Add(500*time.Millisecond)) {
			t.Errorf("signals %+v", h.signals)
		}
	})
}
