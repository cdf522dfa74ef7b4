package slack_test

import (
	"testing"

	"parley/ingest/event"
)

// An edit is known by the time at which somebody made it; what Slack changes by
// itself is one only if words or files are others than before.
func TestWhatIsAnEdit(t *testing.T) {
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
		{"a first edit", said("a", nil), said("b", edited(first)), first},
		{"a second edit", said("a", edited(first)), said("b", edited(second)), second},
		{"nothing is told of before", nil, said("b", edited(first)), first},
		{"nothing is told of before, nor of an edit", nil, said("b", nil), ""},
		{"an unfurled link", said("a", nil), said("a", object{"attachments": []object{{"title": "x"}}}), ""},
		{"an unfurled link in an edited message", said("a", edited(first)), said("a", edited(first)), ""},
		{"an edit that changes nothing", said("a", edited(first)), said("a", edited(second)), ""},
		{"a bot's words that stream in", said("a", nil), said("a b", nil), now},
		{"and stream on after an edit", said("a", edited(first)), said("a b", edited(first)), now},
		{"a bot's attachment", said("", build("running")), said("", build("passed")), now},
		{"a file taken away", said("", file("hosted")), said("", file("tombstone")), now},
		{"what was before can't be read", object{"text": 7}, said("b", edited(first)), first},
	} {
		change := object{"type": "message", "subtype": "message_changed", "channel": "C1", "ts": now, "message": tt.after}
		if tt.before != nil {
			change["previous_message"] = tt.before
		}
		keys := keysOf(t, callback(change), people{self: us})
		if tt.revision == "" {
			if keys.Settled == nil || keys.Settled.Reason != event.ReasonNoChange {
				t.Errorf("%s: settled %v, want no change", tt.about, keys.Settled)
			}
			continue
		}
		if want := "edit:C1/1750000000.000100:" + tt.revision; keys.Dedupe != want || keys.Settled != nil {
			t.Errorf("%s: %s (settled %v), want %s", tt.about, keys.Dedupe, keys.Settled, want)
			continue
		}
		if got := heard(t, callback(change), people{self: us}).Revision; got != tt.revision {
			t.Errorf("%s: revision %s, want %s", tt.about, got, tt.revision)
		}
	}
}

func TestAnEditNamesNoThreadInItsKeys(t *testing.T) {
	reply := object{"thread_ts": "1750000000.000050", "edited": object{"ts": "1750000000.000200"}}
	keys := keysOf(t, callback(object{"type": "message", "subtype": "message_changed", "channel": "C1", "message": said("b", reply)}), people{self: us})
	if keys.Thread != "" || keys.Subject != "C1/1750000000.000100" {
		t.Errorf("thread %q, subject %q", keys.Thread, keys.Subject)
	}
}
