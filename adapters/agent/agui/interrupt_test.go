package agui

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/assembly"
	"parley/assembly/stream"
)

// TestInterrupts checks the question that interrupts become, and the resume of every one of
// them by its answer.
func TestInterrupts(t *testing.T) {
	approval := []stream.Option{{ID: "approve", Label: "Approve"}, {ID: "reject", Label: "Reject"}}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, c := range map[string]struct {
		raw    []string
		text   string
		ask    stream.Ask
		answer assembly.Resume
		resume string
	}{
		"an approval": {[]string{`{"id":"i1","reason":"confirmation","message":"Delete it?","expiresAt":"2026-03-04T05:06:07Z"}`}, "Delete it?",
			stream.Ask{Options: approval, Approval: true, ExpiresAt: at}, assembly.Resume{Answered: true, Option: "approve", Text: "1"},
			`[{"interruptId":"i1","status":"resolved","payload":{"approved":true}}]`},
		"a rejection of two": {[]string{`{"id":"i1","reason":"tool_call","toolCallId":"c"}`, `{"id":"i2","reason":"confirmation","message":"Sure?",
				"responseSchema":{"type":"object","properties":{"ok":{"type":"boolean"}}}}`}, "tool_call\nSure?",
			stream.Ask{Options: approval, Approval: true}, assembly.Resume{Answered: true, Option: "reject", Text: "Reject"},
			`[{"interruptId":"i1","status":"resolved","payload":{"approved":false}},{"interruptId":"i2","status":"resolved","payload":{"ok":false}}]`},
		"words": {[]string{`{"id":"i1","reason":"input_required","message":"Which?"}`}, "Which?",
			stream.Ask{}, assembly.Resume{Answered: true, Text: "the red one"}, `[{"interruptId":"i1","status":"resolved","payload":"the red one"}]`},
		"a choice": {[]string{`{"id":"i1","reason":"input_required","message":"Which?","responseSchema":{"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"]}}}}`}, "Which?",
			stream.Ask{Options: []stream.Option{{ID: "red", Label: "red"}, {ID: "blue", Label: "blue"}}}, assembly.Resume{Answered: true, Option: "blue", Text: "2"},
			`[{"interruptId":"i1","status":"resolved","payload":{"colour":"blue"}}]`},
		"a number": {[]string{`{"id":"i1","reason":"x:y","responseSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}`}, "x:y",
			stream.Ask{}, assembly.Resume{Answered: true, Text: "12"}, `[{"interruptId":"i1","status":"resolved","payload":{"n":12}}]`},
		"an object": {[]string{`{"id":"i1","reason":"x:y","responseSchema":{"type":"object","properties":{"a":{},"b":{}}}}`}, "x:y",
			stream.Ask{}, assembly.Resume{Answered: true, Text: `{"a":1}`}, `[{"interruptId":"i1","status":"resolved","payload":{"a":1}}]`},
		"no answer": {[]string{`{"id":"i1","reason":"confirmation"}`, `{"id":"i2"}`}, "confirmation\nThe agent needs an answer to go on.",
			stream.Ask{Options: approval, Approval: true}, assembly.Resume{}, `[{"interruptId":"i1","status":"cancelled"},{"interruptId":"i2","status":"cancelled"}]`},
	} {
		var raw []json.RawMessage
		for _, one := range c.raw {
			raw = append(raw, json.RawMessage(one))
		}
		text, asked := ask(raw)
		details, err := json.Marshal(asked)
		if err != nil || text != c.text {
			t.Errorf("%s: text %q, %v", name, text, err)
		}
		if diff := cmp.Diff(c.ask, (stream.Message{Details: details}).Ask()); diff != "" {
			t.Errorf("%s: question (-want +got):\n%s", name, diff)
		}
		c.answer.Details = details
		got, err := json.Marshal(resume(&c.answer))
		if err != nil || string(got) != c.resume {
			t.Errorf("%s: resume %s, want %s, %v", name, got, c.resume, err)
		}
	}
	if got := resume(nil); got != nil {
		t.Errorf("no question is resumed by %v", got)
	}
}
