package runinput_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/assembly/runinput"
	"parley/ingest/event"
)

// TestRead reads every role and keeps each value that it does not know.
func TestRead(t *testing.T) {
	const body = `{"threadId":"550E8400-E29B-41D4-A716-446655440000","runId":"run-002","parentRunId":"run-001","state":null,
		"messages":[
			{"id":"m1","role":"user","encryptedValue":"e1","content":[{"type":"text","text":"天"},{"type":"binary","mimeType":"image/png","url":"u","filename":"a.png","data":null},{"text":"气","type":"text"}],"x":{"b":1,"a":2}},
			{"id":"m2","role":"assistant","content":null,"toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"encryptedValue":null}]},
			{"id":"m3","role":"tool","content":"ok","toolCallId":"c","error":null},
			{"id":"m4","role":"system","content":"Be brief."},
			{"id":"m5","role":"developer","content":"Be kind."},
			{"id":"m6","role":"reasoning","content":"hm","encryptedValue":"e6"},
			{"id":"m7","role":"activity","activityType":"plan","content":{"steps":[]}}],
		"tools":[],"forwardedProps":{"b":1.50,"a":[]},"later":"kept"}`
	in, err := runinput.Read([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Check(len(body)); err != nil {
		t.Fatal(err)
	}
	want := []runinput.Block{{Type: "text", Text: "天"}, {Type: "binary", MimeType: "image/png", URL: "u", Filename: "a.png"}, {Type: "text", Text: "气"}}
	if diff := cmp.Diff(want, in.Messages[0].Content.Blocks); diff != "" || in.ThreadID != thread || in.RunID != "run-002" || len(in.Messages) != 7 {
		t.Errorf("%s\n%+v", diff, in.Input)
	}
	if strings.Contains(string(in.Rest), `"url"`) || strings.Contains(string(in.Rest), "550") {
		t.Errorf("the rest has the content or the ids: %s", in.Rest)
	}
	rest, err := runinput.ReadRest(in.Rest)
	if err != nil {
		t.Fatal(err)
	}
	wantRest := runinput.Rest{
		ParentRunID: "run-001", State: json.RawMessage("null"), Tools: json.RawMessage("[]"), Context: nil, ForwardedProps: json.RawMessage(`{"b":1.50,"a":[]}`),
		User: []event.Extra{{Key: "encryptedValue", Value: json.RawMessage(`"e1"`)}, {Key: "x", Value: json.RawMessage(`{"b":1,"a":2}`)}},
	}
	more := rest.More
	rest.More = nil
	if diff := cmp.Diff(wantRest, rest); diff != "" {
		t.Error(diff)
	}
	if len(more) != 6 || !strings.Contains(string(more[0]), `"encryptedValue":null`) || !strings.Contains(string(more[4]), `"encryptedValue":"e6"`) {
		t.Errorf("%s", more)
	}
	rest.More = more
	if diff := cmp.Diff([]string{"Be brief.", "Be kind."}, rest.Instructions()); diff != "" {
		t.Error(diff)
	}
	if prompt, err := rest.ToolsPrompt(); prompt != "" || err != nil {
		t.Errorf("%q, %v", prompt, err)
	}
}

// TestReadReportsFaults compares the members that an error names.
func TestReadReportsFaults(t *testing.T) {
	message := func(m string) string {
		return `{"threadId":"` + thread + `","runId":"r","messages":[` + m + `]}`
	}
	for body, fields := range map[string]string{
		`[]`:               "body",
		`{"a"`:             "body",
		`{}`:               "runId",
		message(``) + `{}`: "body",
		message(`{"id":"m","role":"user","content":"hi"}`): "",
		message(`{"id":"m","role":"user","content":""}`):   "",
		message(`{"id":"m","role":"user"}`):                "messages[0].content",
		message(`{"id":"m","role":"user","content":null}`): "messages[0].content",
		message(`{"role":"user","content":"hi"}`):          "messages[0].id",
		message(`{"id":1,"role":"user","content":7}`):      "messages[0].id messages[0].content",
		message(`7`): "messages[0] messages[0].id messages[0].role",
		message(`{"id":"m","role":"robot","content":"hi"}`):                                                       "messages[0].role",
		message(`{"id":"m","role":"user","content":[{"type":"audio"},{"type":"text"},7]}`):                        "messages[0].content[0].type messages[0].content[1].text messages[0].content[2] messages[0].content[2].type",
		message(`{"id":"m","id":"n","role":"user","content":"hi"}`):                                               "messages[0].id",
		message(`{"id":"m","role":"user","content":"hi"},{"id":"n","role":"tool","content":"x"}`):                 "messages[1].toolCallId",
		message(`{"id":"m","role":"user","content":"hi"},{"id":"n","role":"system"}`):                             "messages[1].content",
		`{"threadId":5,"runId":5,"messages":{},"tools":[{"name":"a","parameters":[]}],"context":[{"value":"x"}]}`: "threadId runId messages tools[0].description tools[0].parameters context[0].description runId",
		`{"runId":"r","state":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`:                       "",
		`{"runId":"r","state":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + `}`:                       "state",
		`{"threadId":"x","runId":"a\nb"}`:                                                                         "runId",
	} {
		_, err := runinput.Read([]byte(body))
		var faults event.FieldErrors
		errors.As(err, &faults)
		var got []string
		for _, f := range faults {
			got = append(got, f.Field)
		}
		if strings.Join(got, " ") != fields {
			t.Errorf("%s: %q, want %q", body, got, fields)
		}
	}
}
