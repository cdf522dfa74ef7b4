package payload_test

import (
	"testing"

	"parley/ingest/event"
)

// TestEditRevision checks which changes are edits, and the time that identifies each. A
// change by Slack itself is an edit only if it changes the text or the files.
func TestEditRevision(t *testing.T) {
	const first, second, now = "1750000000.000200", "1750000000.000300", "1750000000.000900"
	edited := func(ts string) object { return object{"edited": object{"user": "UMARA0001", "ts": ts}} }
	file := func(mode string) object {
		return object{"files": []object{{"id": "F1", "name": "plan.pdf", "mode": mode}}}
	}
	build := func(state string) object {
		return object{"bot_id": "B1", "attachments": []object{{"text": state}}}
	}
	for _, tt := range []struct {
		about         string
		before, after object
		revision      string // empty: no change
	}{
		{"a first edit", messageEvent("a", nil), messageEvent("b", edited(first)), first},
		{"a second edit", messageEvent("a", edited(first)), messageEvent("b", edited(second)), second},
		{"no earlier state", nil, messageEvent("b", edited(first)), first},
		{"no earlier state and no edit time", nil, messageEvent("b", nil), ""},
		{"an unfurled link", messageEvent("a", nil), messageEvent("a", object{"attachments": []object{{"title": "x"}}}), ""},
		{"an unfurled link in an edited message", messageEvent("a", edited(first)), messageEvent("a", edited(first)), ""},
		{"an edit that changes nothing", messageEvent("a", edited(first)), messageEvent("a", edited(second)), ""},
		{"typed text becomes a mention", messageEvent("<@U2> &lt;@U1&gt;", nil), messageEvent("<@U2> <@U1>", edited(first)), first},
		{"a bot streams text", messageEvent("a", nil), messageEvent("a b", nil), now},
		{"a bot streams text after an edit", messageEvent("a", edited(first)), messageEvent("a b", edited(first)), now},
		{"a bot's attachment", messageEvent("", build("running")), messageEvent("", build("passed")), now},
		{"a removed file", messageEvent("", file("hosted")), messageEvent("", file("tombstone")), now},
		{"an unreadable earlier state", object{"text": 7}, messageEvent("b", edited(first)), first},
	} {
		change := object{"type": "message", "subtype": "message_changed", "channel": "C1", "ts": now, "message": tt.after}
		if tt.before != nil {
			change["previous_message"] = tt.before
		}
		keys := keysOf(t, eventCallback(change), fakeDirectory{self: us})
		if tt.revision == "" {
			if keys.Result == nil || keys.Result.Reason != event.ReasonNoChange {
				t.Errorf("%s: settled %v, want no change", tt.about, keys.Result)
			}
			continue
		}
		if want := "edit:C1/1750000000.000100:" + tt.revision; keys.Dedupe != want || keys.Result != nil {
			t.Errorf("%s: %s (settled %v), want %s", tt.about, keys.Dedupe, keys.Result, want)
			continue
		}
		if got := messageOf(t, eventCallback(change), fakeDirectory{self: us}); got.Revision != tt.revision || got.Revision[:got.Dated] != "1750000000" {
			t.Errorf("%s: revision %s of %q, want %s of the second", tt.about, got.Revision, got.Revision[:got.Dated], tt.revision)
		}
	}
}

func TestEditKeysHaveNoThread(t *testing.T) {
	reply := object{"thread_ts": "1750000000.000050", "edited": object{"ts": "1750000000.000200"}}
	keys := keysOf(t, eventCallback(object{"type": "message", "subtype": "message_changed", "channel": "C1", "message": messageEvent("b", reply)}), fakeDirectory{self: us})
	if keys.Thread != "" || keys.MessageID != "C1/1750000000.000100" {
		t.Errorf("thread %q, message id %q", keys.Thread, keys.MessageID)
	}
}
