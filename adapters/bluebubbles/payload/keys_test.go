package payload_test

import (
	"strings"
	"testing"

	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"

	"github.com/google/go-cmp/cmp"
)

func TestKeysOfMessage(t *testing.T) {
	got := keys(t, "new-message", hello())
	if !strings.HasPrefix(got.Dedupe, "message:"+guid+":") {
		t.Errorf("dedupe key %q", got.Dedupe)
	}
	got.Dedupe = ""
	want := event.Keys{
		Kind:      event.KindMessage,
		Thread:    "bluebubbles:home:" + nora,
		Channel:   event.Channel{ID: nora, Type: event.ChannelDirect},
		MessageID: guid,
		Needs:     "address",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestKeysWithoutChat checks that an update, which names no chat, has only its message's
// guid. The same holds for a message without a chat.
func TestKeysWithoutChat(t *testing.T) {
	for _, kind := range []string{"updated-message", "message-send-error", "new-message"} {
		got := keys(t, kind, hello().update())
		if !strings.HasPrefix(got.Dedupe, "edit:"+guid+":") {
			t.Errorf("%s: dedupe key %q", kind, got.Dedupe)
		}
		got.Dedupe = ""
		if diff := cmp.Diff(event.Keys{Kind: event.KindEdit, MessageID: guid}, got); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
		e := normalize(t, kind, hello().update(), contacts{})
		if e.Kind != event.KindEdit || e.Message == nil || !cmp.Equal(e.Targets, []string{guid}) {
			t.Errorf("%s: event %+v", kind, e)
		}
	}
}

// TestAnOlderState checks that the time of an edit begins its revision.
func TestAnOlderState(t *testing.T) {
	before := ""
	for _, edited := range []any{nil, 1000, 1790000001000, 1790000003000} {
		m := message(t, "updated-message", hello().with(fields{"dateEdited": edited}), contacts{})
		if at := m.Revision[:m.Dated]; at <= before {
			t.Errorf("an edit at %v has %s, not after %q", edited, at, before)
		} else {
			before = at
		}
	}
}

// TestRevision checks that every change that a person can see makes a new revision, and so
// does a send error. A receipt, a placeholder or another order does not.
func TestRevision(t *testing.T) {
	files := func(guids ...string) fields {
		var list []any
		for _, g := range guids {
			list = append(list, fields{"guid": g})
		}
		return fields{"attachments": list}
	}
	base := hello().with(files("at_1", "at_2"))
	revision := func(data fields) string { return message(t, "updated-message", data, contacts{}).Revision }

	for name, change := range map[string]fields{
		"delivered":   {"dateDelivered": 1790000001000},
		"read":        {"dateRead": 1790000002000},
		"placeholder": {"text": "\uFFFChello"},
		"order":       files("at_2", "at_1"),
		"no chat":     {"chats": nil},
		"preview":     {"attachments": []any{fields{"guid": "at_1"}, fields{"guid": "at_2"}, fields{"guid": "at_3", "hideAttachment": true}}},
	} {
		if revision(base.with(change)) != revision(base) {
			t.Errorf("%s makes a new revision", name)
		}
	}
	seen := map[string]string{revision(base): "the original"}
	for name, change := range map[string]fields{
		"text":         {"text": "hello!"},
		"subject":      {"subject": "hello", "text": ""},
		"edited":       {"dateEdited": 1790000003000},
		"file removed": files("at_1"),
		"file added":   files("at_1", "at_2", "at_3"),
		"send failed":  {"error": 4},
	} {
		r := revision(base.with(change))
		if other, ok := seen[r]; ok {
			t.Errorf("%s has the same revision as %s", name, other)
		}
		seen[r] = name
	}
}

// TestRepeatedMessage checks that a repeated message has the same key, and another key after
// it has changed.
func TestRepeatedMessage(t *testing.T) {
	first := keys(t, "new-message", mine().with(fields{"tempGuid": "k7q2m9"}))
	again := keys(t, "new-message", mine().with(fields{"dateDelivered": 1790000001000}))
	edited := keys(t, "new-message", mine().with(fields{"text": "hullo", "dateEdited": 1790000001000}))
	if first.Dedupe != again.Dedupe {
		t.Error("the same message has two keys")
	}
	if first.Dedupe == edited.Dedupe {
		t.Error("an edited message has the same key as the original")
	}
	if edited.Kind != event.KindMessage || edited.MessageID != guid {
		t.Errorf("an edit sent as new-message has kind %s and message id %q", edited.Kind, edited.MessageID)
	}
}

func TestUnsent(t *testing.T) {
	nothing := fields{"text": nil, "partCount": 0, "dateEdited": 1790000001000}
	for name, test := range map[string]struct {
		change fields
		want   event.Kind
	}{
		"retracted":         {fields{"dateRetracted": 1790000001000}, event.KindDelete},
		"nothing left":      {nothing, event.KindDelete},
		"parts not counted": {nothing.with(fields{"partCount": nil}), event.KindDelete},
		"edited to nothing": {nothing.with(fields{"partCount": 1}), event.KindDelete},
		"a file left":       {nothing.with(fields{"attachments": []any{fields{"guid": "at_1"}}}), event.KindEdit},
		"words left":        {nothing.with(fields{"text": "still"}), event.KindEdit},
		"no edit date":      {nothing.with(fields{"dateEdited": nil}), event.KindEdit},
		"no retract date":   {fields{"dateRetracted": 0}, event.KindEdit},
	} {
		got := keys(t, "updated-message", hello().update().with(test.change))
		if got.Kind != test.want {
			t.Errorf("%s: kind %s, want %s", name, got.Kind, test.want)
		}
	}

	update := keys(t, "updated-message", hello().update().with(nothing))
	repeated := keys(t, "new-message", hello().with(nothing))
	if update.Dedupe != "delete:"+guid || repeated.Dedupe != update.Dedupe {
		t.Errorf("dedupe keys %q and %q", update.Dedupe, repeated.Dedupe)
	}
	want := event.Event{Kind: event.KindDelete, Targets: []string{guid}}
	if diff := cmp.Diff(want, normalize(t, "new-message", hello().with(nothing), contacts{})); diff != "" {
		t.Error(diff)
	}
	if failed := keys(t, "message-send-error", mine().with(nothing)); failed.Kind != event.KindEdit {
		t.Errorf("a failure of sending is a %s", failed.Kind)
	}
}

// TestGroupChangesComeTwice checks a group change, which comes under its own type and as
// new-message. Both have the same key and the same result.
func TestGroupChangesComeTwice(t *testing.T) {
	for _, test := range []struct {
		kind         string
		item, action int
		want         event.Kind
		reason       string
	}{
		{"participant-added", 1, 0, event.KindMember, "member-event"},
		{"participant-removed", 1, 1, event.KindMember, "member-event"},
		{"participant-left", 3, 0, event.KindMember, "member-event"},
		{"group-name-change", 2, 0, event.KindOther, "group-event"},
		{"group-icon-changed", 3, 1, event.KindOther, "group-event"},
		{"group-icon-removed", 3, 2, event.KindOther, "group-event"},
	} {
		data := hello().in(group, 43).with(fields{"text": nil, "itemType": test.item, "groupActionType": test.action})
		want := event.Keys{Kind: test.want, Dedupe: "group:" + guid, Result: event.Ignore(test.reason)}
		for _, kind := range []string{test.kind, "new-message", "updated-message"} {
			if diff := cmp.Diff(want, keys(t, kind, data)); diff != "" {
				t.Errorf("%s as %s: %s", test.kind, kind, diff)
			}
			e := normalize(t, kind, data, contacts{})
			if e.Kind != test.want || e.Ignored != test.reason {
				t.Errorf("%s as %s: event %+v", test.kind, kind, e)
			}
		}
	}
	notice := keys(t, "new-message", hello().with(fields{"itemType": 4}))
	if diff := cmp.Diff(event.Ignore("system-message"), notice.Result); diff != "" {
		t.Errorf("a notice of the platform: %s", diff)
	}
}

func TestUnknownWebhooks(t *testing.T) {
	envelopes, _ := recording(t, "notices")
	if len(envelopes) == 0 {
		t.Fatal("the recording is empty")
	}
	seen := map[string]bool{}
	for _, e := range envelopes {
		got := payload.Normalizer{}.Keys(e, contacts{})
		if diff := cmp.Diff(event.Ignore("not-an-event"), got.Result); diff != "" || got.Kind != event.KindOther {
			t.Errorf("%s: kind %s, %s", e.Body, got.Kind, diff)
		}
		if seen[got.Dedupe] {
			t.Errorf("%s: another body has the same key", e.Body)
		}
		seen[got.Dedupe] = true
	}
}

// TestFaults checks that the error names every faulty field.
func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want []string
	}{
		"not JSON":         {`{"type":`, []string{"body"}},
		"more than JSON":   {`{"type":"hello-world"} {}`, []string{"body"}},
		"a list":           {`[{"type":"new-message"}]`, []string{"body"}},
		"null":             {`null`, []string{"body"}},
		"no data":          {`{"type":"new-message"}`, []string{"data"}},
		"data of a string": {`{"type":"updated-message","data":"x"}`, []string{"data"}},
		"no guid":          {`{"type":"new-message","data":{}}`, []string{"data.guid"}},
		"another case":     {`{"type":"new-message","data":{"GUID":"G"}}`, []string{"data.guid"}},
		"a group's guid":   {`{"type":"group-name-change","data":{"guid":1}}`, []string{"data.guid"}},
		"after year 9999":  {`{"type":"new-message","data":{"guid":"G","dateCreated":253402300800000}}`, []string{"data.dateCreated"}},
		"a long guid":      {`{"type":"new-message","data":{"guid":"` + strings.Repeat("G", 513) + `"}}`, []string{"data.guid"}},
		"everything": {
			`{"type":"new-message","data":{"guid":7,"text":[],"isFromMe":"no","dateCreated":-1,"dateEdited":"now","threadOriginatorGuid":{},
			"handle":{"address":5},"chats":[{"guid":"iMessage;-;"}],"attachments":[{"transferName":"x"}],"associatedMessageType":[]}}`,
			[]string{
				"data.guid", "data.text", "data.isFromMe", "data.dateCreated", "data.dateEdited", "data.threadOriginatorGuid",
				"data.handle.address", "data.chats[0].guid", "data.attachments[0].guid", "data.associatedMessageType",
			},
		},
	} {
		got := payload.Normalizer{}.Keys(envelope([]byte(test.body)), contacts{})
		if got.Result == nil || got.Result.Disposition != event.Dead {
			t.Errorf("%s: the result is %v, want a dead letter", name, got.Result)
			continue
		}
		for _, field := range test.want {
			if !strings.Contains("; "+got.Result.Error, "; "+field+": ") {
				t.Errorf("%s: %q does not name %s", name, got.Result.Error, field)
			}
		}
		if n := strings.Count(got.Result.Error, "; ") + 1; n != len(test.want) {
			t.Errorf("%s: %d faults, want %d: %s", name, n, len(test.want), got.Result.Error)
		}
		if _, err := (payload.Normalizer{}).Normalize(t.Context(), envelope([]byte(test.body)), contacts{}); err == nil {
			t.Errorf("%s: Normalize accepts a body that Keys refuses", name)
		}
	}
}
