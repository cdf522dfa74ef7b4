package agui

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/assembly"
	"parley/ingest/stream"
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
		// The next four are as Python's models write them: https://docs.ag-ui.com/concepts/interrupts
		"a time without a zone": {[]string{`{"id":"i1","reason":"confirmation","expiresAt":"2026-03-04T05:06:07","message":"Delete it?"}`}, "Delete it?",
			stream.Ask{Options: approval, Approval: true, ExpiresAt: at}, assembly.Resume{}, `[{"interruptId":"i1","status":"cancelled"}]`},
		"members of other types": {[]string{`{"reason":7,"expiresAt":"tomorrow","responseSchema":true,"message":"Sure?","id":"i1"}`}, "Sure?",
			stream.Ask{}, assembly.Resume{Answered: true, Text: "yes"}, `[{"interruptId":"i1","status":"resolved","payload":"yes"}]`},
		"a choice of numbers": {[]string{`{"id":"i1","reason":"x:y","message":"How many?","responseSchema":{"type":"object","properties":{"n":{"type":["integer","null"],"enum":[1,20,null]}}}}`}, "How many?",
			stream.Ask{Options: []stream.Option{{ID: "1", Label: "1"}, {ID: "20", Label: "20"}}}, assembly.Resume{Answered: true, Option: "20", Text: "2"},
			`[{"interruptId":"i1","status":"resolved","payload":{"n":20}}]`},
		"a choice of constants": {[]string{`{"id":"i1","reason":"x:y","message":"Which?","responseSchema":{"oneOf":[{"const":"r","title":"Red"},{"const":"b"},{"type":"null"}]}}`}, "Which?",
			stream.Ask{Options: []stream.Option{{ID: "r", Label: "Red"}, {ID: "b", Label: "b"}}}, assembly.Resume{Answered: true, Option: "r", Text: "Red"},
			`[{"interruptId":"i1","status":"resolved","payload":"r"}]`},
		"a choice beside free words": {[]string{`{"id":"i1","reason":"x:y","message":"Which?","responseSchema":{"anyOf":[{"const":"r"},{"type":"string"}]}}`}, "Which?",
			stream.Ask{}, assembly.Resume{Answered: true, Text: "green"}, `[{"interruptId":"i1","status":"resolved","payload":"green"}]`},
		"no answer": {[]string{`{"id":"i1","reason":"confirmation"}`, `{"id":"i2"}`}, "confirmation\nThe agent needs an answer to go on.",
			stream.Ask{Options: approval, Approval: true}, assembly.Resume{}, `[{"interruptId":"i1","status":"cancelled"},{"interruptId":"i2","status":"cancelled"}]`},
	} {
		var raw []json.RawMessage
		for _, one := range c.raw {
			raw = append(raw, json.RawMessage(one))
		}
		text, asked, _ := ask(raw)
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
	for at, n := range map[string]int{`"2026-03-04T05:06:07"`: 0, `null`: 0, `"tomorrow"`: 1, `7`: 1} {
		if _, asked, faults := ask([]json.RawMessage{json.RawMessage(`{"id":"i","expiresAt":` + at + `}`)}); len(faults) != n || n > 0 && !asked.ExpiresAt.IsZero() {
			t.Errorf("%s: %q, %v", at, faults, asked.ExpiresAt)
		}
	}
	if got := resume(nil); got != nil {
		t.Errorf("no question is resumed by %v", got)
	}
}
