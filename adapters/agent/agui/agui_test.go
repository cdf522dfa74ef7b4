package agui_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/adapters"
	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/agui"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/card"
	"parley/ingest/stream"
)

func newAgent(address string, config remote.Config, transport http.RoundTripper) turn.Agent {
	return agui.New(agui.Config{
		URL: address + "/agent", Config: config, Reading: remote.DefaultReading(),
		Headers: []agui.Header{{Name: "Authorization", Value: secret.New("Bearer " + agenttest.Canary)}},
	}, nil, transport)
}

// events returns an event stream.
func events(bodies ...string) string {
	var b strings.Builder
	for _, body := range bodies {
		b.WriteString("data: " + body + "\n\n")
	}
	return b.String()
}

const (
	started  = `{"type":"RUN_STARTED","threadId":"t","runId":"r"}`
	finished = `{"type":"RUN_FINISHED","threadId":"t","runId":"r"}`
	start    = `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`
	content  = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Grüße, "}`
	rest     = `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Olivia"}`
	end      = `{"type":"TEXT_MESSAGE_END","messageId":"m"}`
)

func TestMisbehavingServers(t *testing.T) {
	agenttest.Test(t, agenttest.Protocol{
		Tools: true, New: newAgent, Text: "Grüße, Olivia",
		Answer:    events(started, start, content, rest, end, finished),
		Beginning: events(started, start, content),
		Say: func(pieces ...string) string {
			bodies := []string{started, start}
			for _, piece := range pieces {
				quoted, _ := json.Marshal(piece)
				bodies = append(bodies, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":`+string(quoted)+`}`)
			}
			return events(append(bodies, end, finished)...)
		},
		Grows: map[string]func(n int) string{
			"arguments of a call": func(n int) string {
				bodies := []string{started, `{"type":"TOOL_CALL_START","toolCallId":"t","toolCallName":"f"}`}
				bodies = append(bodies, slices.Repeat([]string{`{"type":"TOOL_CALL_ARGS","toolCallId":"t","delta":"` + strings.Repeat("x", 100) + `"}`}, n)...)
				return events(append(bodies, `{"type":"TOOL_CALL_END","toolCallId":"t"}`, start, content, end, finished)...)
			},
			"messages": func(n int) string {
				bodies := []string{started}
				for i := range n {
					for _, body := range []string{start, content, end} {
						bodies = append(bodies, strings.Replace(body, `"m"`, fmt.Sprintf(`"m%d"`, i), 1))
					}
				}
				return events(append(bodies, finished)...)
			},
		},
	})
}

// run returns what the agent makes of an event stream.
func run(t *testing.T, bodies ...string) (emitted []stream.Message, err error) {
	t.Helper()
	address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, events(bodies...)) })
	return agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), http.DefaultTransport), agenttest.Hello())
}

func TestInput(t *testing.T) {
	var got map[string]any
	address := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		agenttest.Stream(w, events(started, finished))
	})
	config := remote.DefaultConfig()
	config.SystemPrompt = "Be brief."
	if _, err := agenttest.Run(t.Context(), newAgent(address, config, http.DefaultTransport), agenttest.Hello()); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"threadId": "5f0c9a4e-8f5e-5c5a-9b5e-0d6f8f3c1a11", "runId": "run-1", "state": map[string]any{},
		"tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{},
		"messages": []any{
			map[string]any{"id": "system", "role": "system", "content": "Be brief."},
			map[string]any{"id": "m1", "role": "user", "content": "[Olivia]: hi"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestGivenIsSent posts what a client gave for a run, but nothing that could answer an interrupt.
func TestGivenIsSent(t *testing.T) {
	var got map[string]any
	address := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		agenttest.Stream(w, events(started, finished))
	})
	if _, err := agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), http.DefaultTransport), agenttest.Given()); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"threadId": "5f0c9a4e-8f5e-5c5a-9b5e-0d6f8f3c1a11", "runId": "run-1", "state": map[string]any{"n": 1.0},
		"tools":   []any{map[string]any{"name": "f", "description": "d", "parameters": map[string]any{}}},
		"context": []any{map[string]any{"description": "page", "value": "home"}}, "forwardedProps": map[string]any{"k": []any{}},
		"messages": []any{
			map[string]any{"id": "m1", "role": "user", "content": "[Olivia]: hi", "encryptedValue": "e"},
			map[string]any{"id": "m2", "role": "tool", "content": "ok", "toolCallId": "c", "x": 1.0},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestStateBeginsAsGiven changes a state that a client gave for the run.
func TestStateBeginsAsGiven(t *testing.T) {
	for change, want := range map[string]string{
		`{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/n","value":2}]}`: `{"state":{"n":2}}`,
		`{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/n"}]}`:            `{"state":{}}`,
		`{"type":"CUSTOM","name":"x"}`:                                            "",
	} {
		address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, events(started, change, finished)) })
		emitted, err := agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), http.DefaultTransport), agenttest.Given())
		if err != nil {
			t.Errorf("%s: %v", change, err)
			continue
		}
		if got := string(emitted[len(emitted)-1].Details); got != want {
			t.Errorf("%s: the reply has %s, want %s", change, got, want)
		}
	}
}

// TestImagesAreParts checks a message with an image, and that other files are named.
func TestImagesAreParts(t *testing.T) {
	var got struct{ Messages []any }
	address := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		agenttest.Stream(w, events(started, finished))
	})
	input, files := agenttest.Looks()
	agent := agui.New(agui.Config{URL: address, Config: remote.DefaultConfig(), Pictures: remote.DefaultPictures()}, files, http.DefaultTransport)
	if _, err := agenttest.Run(t.Context(), agent, input); err != nil {
		t.Fatal(err)
	}
	type object = map[string]any
	want := []any{object{"id": "m1", "role": "user", "content": []any{
		object{"type": "text", "text": "[Olivia]: hi"},
		object{"type": "image", "source": object{"type": "data", "value": base64.StdEncoding.EncodeToString([]byte(agenttest.PNG)), "mimeType": "image/png"}},
		object{"type": "text", "text": "(file: b.pdf, application/pdf, 8 B)"},
	}}}
	if diff := cmp.Diff(want, got.Messages); diff != "" {
		t.Error(diff)
	}
}

// TestRefusedImages: an endpoint that refuses a request for its images gets it once more without them, and no
// images for an hour. A run that has begun is not made again, whatever its error says.
func TestRefusedImages(t *testing.T) {
	const words = "this model has no image input"
	for name, c := range map[string]struct {
		refuse   func(w http.ResponseWriter)
		images   adapters.Switch
		answered bool
		requests int // for two runs
	}{
		"refused": {func(w http.ResponseWriter) { http.Error(w, words, http.StatusBadRequest) }, remote.AutoSwitch, true, 3},
		"begun": {func(w http.ResponseWriter) {
			agenttest.Stream(w, events(started, `{"type":"RUN_ERROR","message":"`+words+`"}`))
		}, remote.AutoSwitch, false, 2},
		"always sent":  {func(w http.ResponseWriter) { http.Error(w, words, http.StatusBadRequest) }, adapters.On, false, 2},
		"never sent":   {nil, adapters.Off, true, 2},
		"refused, 500": {func(w http.ResponseWriter) { http.Error(w, words, http.StatusInternalServerError) }, remote.AutoSwitch, true, 3},
	} {
		requests := 0
		address := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			requests++
			if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"image"`) {
				c.refuse(w)
				return
			}
			agenttest.Stream(w, events(started, start, content, rest, end, finished))
		})
		input, files := agenttest.Looks()
		agent := agui.New(agui.Config{URL: address, Config: remote.DefaultConfig(), Pictures: remote.Pictures{Images: c.images}}, files, http.DefaultTransport)
		for range 2 {
			if _, err := agenttest.Run(t.Context(), agent, input); (err == nil) != c.answered {
				t.Errorf("%s: %v", name, err)
			}
		}
		if requests != c.requests || (len(agent.Learnt()) > 0) != (requests == 3) {
			t.Errorf("%s: %d requests, want %d; learnt %q", name, requests, c.requests, agent.Learnt())
		}
	}
}

// TestOrder checks the order of events that a run may have.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []string
		want string // a part of the error; empty for none
	}{
		{"no text", []string{started, finished}, ""},
		{"a message", []string{started, start, content, end, finished}, ""},
		{"an unknown event", []string{started, `{"type":"SPARKLE","x":1}`, finished}, ""},
		{"a result without its call", []string{started, `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"1"}`, finished}, ""},
		{"no start", []string{start}, "the first event is TEXT_MESSAGE_START"},
		{"two starts", []string{started, started}, "RUN_STARTED came twice"},
		{"open things at the end", []string{started, start, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n"}`, content, `{"type":"STEP_STARTED","stepName":"s"}`,
			`{"type":"REASONING_START","messageId":"r"}`, `{"type":"REASONING_MESSAGE_START","messageId":"r","role":"reasoning"}`, `{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}`, finished}, ""},
		{"arguments of a call that is not open", []string{started, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}`}, "which is not open"},
		{"an error without words", []string{started, `{"type":"RUN_ERROR"}`}, "the agent reports: an error without a message"},
		{"an error with a code alone", []string{started, `{"type":"RUN_ERROR","message":null,"code":"E1"}`}, "the agent reports: E1"},
		{"a message twice", []string{started, start, start}, "which is open already"},
		{"no end", []string{started, start, content, end}, "without RUN_FINISHED or RUN_ERROR"},
		{"nothing", nil, "without RUN_FINISHED or RUN_ERROR"},
		{"an error first", []string{`{"type":"RUN_ERROR","message":"no model","code":"E1"}`}, "the agent reports: no model E1"},
		{"cancelled", []string{started, `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"cancelled"}}`}, "cancelled"},
		{"no id", []string{started, `{"type":"TEXT_MESSAGE_START"}`}, "TEXT_MESSAGE_START.messageId: is required"},
		{"an id of another type", []string{started, `{"type":"TEXT_MESSAGE_START","messageId":1}`}, "messageId"},
		{"a role", []string{started, `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"tool"}`}, "TEXT_MESSAGE_START.role"},
		{"no interrupt", []string{started, `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[]}}`}, "at least one interrupt"},
		{"a chunk without an id", []string{started, `{"type":"TEXT_MESSAGE_CHUNK","delta":"x"}`}, "messageId: is required"},
		{"a result inside of its call", []string{started, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n"}`, `{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"1"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}`, `{"type":"TOOL_CALL_END","toolCallId":"c"}`, finished}, ""},
		{"another owner", []string{started, start, `{"type":"TEXT_MESSAGE_END","messageId":"m","subagentRunId":"s"}`}, "not its own"},
		{"another owner of a chunk", []string{started, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","subagentRunId":"s","delta":"x"}`}, "subagentRunId"},
		{"another role of a chunk", []string{started, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"}`, `{"type":"TEXT_MESSAGE_CHUNK","role":"user","delta":"x"}`}, "is not that of the open one"},
		{"a chunk of one of two subagents", []string{started, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","subagentRunId":"s","delta":"x"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","subagentRunId":"t","delta":"x"}`, `{"type":"TEXT_MESSAGE_CHUNK","delta":"x"}`}, "several are open"},
		{"a tool call of another's message", []string{started, start, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n","parentMessageId":"m","subagentRunId":"s"}`}, "not its own"},
		{"a tool call of its message's owner", []string{started, `{"type":"TEXT_MESSAGE_START","messageId":"m","subagentRunId":"s"}`, end, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n","parentMessageId":"m"}`, `{"type":"TOOL_CALL_END","toolCallId":"c","subagentRunId":"s"}`, `{"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"c","content":"1"}`, finished}, ""},
		{"a subagent twice", []string{started, `{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}`, `{"type":"SUBAGENT_FINISHED","subagentRunId":"s"}`, `{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}`}, "which has ended"},
		{"a subagent without its parent", []string{started, `{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n","parentSubagentRunId":"p"}`}, "whose parent has not begun"},
	} {
		_, err := run(t, c.in...)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
		fault, ok := errors.AsType[*remote.Error](err)
		if err != nil && !ok {
			t.Errorf("%s: the error is a %T", c.name, err)
		}
		disorder := ok && (strings.Contains(err.Error(), "order") || strings.Contains(err.Error(), "invalid event"))
		if disorder && !fault.Permanent {
			t.Errorf("%s: the agent is asked again: %v", c.name, err)
		}
	}
}

// TestEvents checks what is emitted for events, without times and chunks.
func TestEvents(t *testing.T) {
	answer := func(text, details string) stream.Message {
		m := stream.Message{Type: stream.Answer, Text: text, ActivityID: "run-1/answer"}
		if details != "" {
			m.Details = []byte(details)
		}
		return m
	}
	for _, c := range []struct {
		name string
		in   []string
		want []stream.Message
	}{
		{"two messages", []string{start, content, end, `{"type":"TEXT_MESSAGE_START","messageId":"n"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"n","delta":"Bye"}`, `{"type":"TEXT_MESSAGE_END","messageId":"n"}`},
			[]stream.Message{answer("Grüße, \n\nBye", "")}},
		{"two messages that interleave", []string{`{"type":"TEXT_MESSAGE_START","messageId":"n"}`, start, content, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"n","delta":"B"}`, rest, end, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"n","delta":"ye"}`, `{"type":"TEXT_MESSAGE_END","messageId":"n"}`},
			[]stream.Message{answer("Bye\n\nGrüße, Olivia", "")}},
		{"three of which none ends", []string{start, `{"type":"TEXT_MESSAGE_START","messageId":"n"}`, `{"type":"TEXT_MESSAGE_START","messageId":"o"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"o","delta":"Bye"}`, content},
			[]stream.Message{answer("Grüße, \n\nBye", "")}},
		{"a message without its begin", []string{content, rest, `{"type":"REASONING_MESSAGE_CONTENT","messageId":"r","delta":"Hm."}`},
			[]stream.Message{{Type: stream.Thought, Text: "Hm.", ActivityID: "run-1/thought-1"}, answer("Grüße, Olivia", "")}},
		{"a message that goes on after its end", []string{start, content, end, rest},
			[]stream.Message{answer("Grüße, Olivia", "")}},
		{"chunks", []string{`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"}`, `{"type":"TEXT_MESSAGE_CHUNK","delta":"b"}`},
			[]stream.Message{answer("ab", "")}},
		{"chunks that interleave", []string{`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"It "}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"By"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"was"}`,
			`{"type":"TEXT_MESSAGE_CHUNK","delta":" here."}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"e"}`, `{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"find"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"o","delta":"End"}`},
			[]stream.Message{{Type: stream.Update, Text: "find", ActivityID: "c", Details: []byte(`{"tool":"find","tool_event":"started","tool_use_id":"c"}`)},
				{Type: stream.Update, Text: "find", ActivityID: "c", Details: []byte(`{"arguments":"","tool":"find","tool_event":"progress","tool_use_id":"c"}`)},
				answer("It was here.\n\nBye\n\nEnd", "")}},
		{"chunks of a subagent between them", []string{`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"a"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"s","subagentRunId":"x","delta":"hidden"}`, `{"type":"TEXT_MESSAGE_CHUNK","delta":"b"}`},
			[]stream.Message{answer("ab", "")}},
		{"two thoughts", []string{`{"type":"REASONING_MESSAGE_CHUNK","messageId":"r1","delta":"Hm."}`, `{"type":"REASONING_MESSAGE_CHUNK","messageId":"r2","delta":"So."}`},
			[]stream.Message{{Type: stream.Thought, Text: "Hm.", ActivityID: "run-1/thought-1"}, {Type: stream.Thought, Text: "So.", ActivityID: "run-1/thought-2"}, answer("", "")}},
		{"other roles and subagents", []string{`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"user","delta":"a"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"s","subagentRunId":"x","delta":"b"}`},
			[]stream.Message{answer("", "")}},
		{"a character in halves", []string{start, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ud83d"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ude42"}`, end},
			[]stream.Message{answer("🙂", "")}},
		{"an empty delta", []string{start, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":""}`, content, end},
			[]stream.Message{answer("Grüße, ", "")}},
		{"nulls of older versions", []string{`{"type":"TEXT_MESSAGE_START","messageId":"m","role":null,"parentMessageId":null,"timestamp":null,"rawEvent":null}`, content, end},
			[]stream.Message{answer("Grüße, ", "")}},
		{"reasoning", []string{`{"type":"REASONING_START","messageId":"r"}`, `{"type":"REASONING_MESSAGE_START","messageId":"r","role":"reasoning"}`, `{"type":"REASONING_MESSAGE_CONTENT","messageId":"r","delta":"Hm."}`, `{"type":"REASONING_MESSAGE_END","messageId":"r"}`, `{"type":"REASONING_END","messageId":"r"}`, start, content, end},
			[]stream.Message{{Type: stream.Thought, Text: "Hm.", ActivityID: "run-1/thought-1"}, answer("Grüße, ", "")}},
		{"thinking", []string{`{"type":"THINKING_START","title":"x"}`, `{"type":"THINKING_TEXT_MESSAGE_START"}`, `{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"Hm."}`, `{"type":"THINKING_TEXT_MESSAGE_END"}`, `{"type":"THINKING_END"}`},
			[]stream.Message{{Type: stream.Thought, Text: "Hm.", ActivityID: "run-1/thought-1"}, answer("", "")}},
		{"a tool call", []string{`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"find","parentMessageId":null}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"q\":"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"1}"}`, `{"type":"TOOL_CALL_END","toolCallId":"c"}`, `{"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"c","content":"7"}`},
			[]stream.Message{
				{Type: stream.Update, Text: "find", ActivityID: "c", Details: []byte(`{"tool":"find","tool_event":"started","tool_use_id":"c"}`)},
				{Type: stream.Update, Text: "find", ActivityID: "c", Details: []byte(`{"arguments":"{\"q\":1}","tool":"find","tool_event":"progress","tool_use_id":"c"}`)},
				{Type: stream.Update, Text: "find", ActivityID: "c", Details: []byte(`{"result":"7","tool":"find","tool_event":"completed","tool_use_id":"c"}`)},
				answer("", "")}},
		{"state", []string{`{"type":"STATE_SNAPSHOT","snapshot":{"a":1,"n":null}}`, `{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/a","value":null},{"op":"add","path":"/b","value":[2]}]}`},
			[]stream.Message{answer("", `{"state":{"a":null,"b":[2],"n":null}}`)}},
		{"a patch that does not fit", []string{`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/b","value":1},{"op":"remove","path":"/a"}]}`, `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/c","value":1}]}`, start, content, end},
			[]stream.Message{{Type: stream.Warning, Text: `the agent's state is unknown: STATE_DELTA: remove: path: there is no "a"`}, answer("Grüße, ", "")}},
		{"a state after such a patch", []string{`{"type":"STATE_DELTA","delta":[{"op":"remove","path":"/a"}]}`, `{"type":"STATE_SNAPSHOT","snapshot":{"b":1}}`, `{"type":"STATE_DELTA","delta":[{"op":"add","path":"/c","value":2}]}`},
			[]stream.Message{{Type: stream.Warning, Text: `the agent's state is unknown: STATE_DELTA: remove: path: there is no "a"`}, answer("", `{"state":{"b":1,"c":2}}`)}},
		{"a null state", []string{`{"type":"STATE_SNAPSHOT","snapshot":null}`}, []stream.Message{answer("", `{"state":null}`)}},
		{"whole messages", []string{`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m1","role":"user","content":"hi"},{"id":"m2","role":"assistant","content":"Bye"}]}`},
			[]stream.Message{answer("Bye", "")}},
		{"whole messages of an agent that keeps its own", []string{`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":"hello"},{"id":"a","role":"assistant","content":"Old"},{"id":"m1","role":"user","content":"hi"},{"id":"b","role":"assistant","content":"Bye"},{"id":"t","role":"tool","content":"x"},{"id":"c","role":"assistant","content":"now"}]}`},
			[]stream.Message{answer("Bye\n\nnow", "")}},
		{"what only its clients know", []string{`{"type":"CUSTOM","name":"x","value":null}`, `{"type":"SPARKLE","x":1}`},
			[]stream.Message{{Type: stream.System, Details: []byte(`{"type":"CUSTOM","name":"x","value":null}`)}, {Type: stream.System, Details: []byte(`{"type":"SPARKLE","x":1}`)}, answer("", "")}},
	} {
		emitted, err := run(t, append(append([]string{started}, c.in...), finished)...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var got []stream.Message
		for _, m := range emitted {
			if m.Type != stream.StreamingChunk {
				got = append(got, m)
			}
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(stream.Message{}, "Time")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestLongEvents checks that an event which is too long is passed by unless the answer needs it, and
// that messages about the work do not take the answer's place.
func TestLongEvents(t *testing.T) {
	long := `"` + strings.Repeat("x", 2<<20) + `"`
	for name, c := range map[string]struct {
		event   string
		warning string
		fails   bool
	}{
		"a state":            {`{"type":"STATE_SNAPSHOT","snapshot":{"a":` + long + `}}`, "the agent's state is unknown: STATE_SNAPSHOT: the event is too long", false},
		"a state's change":   {`{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":` + long + `}]}`, "the agent's state is unknown: STATE_DELTA: the event is too long", false},
		"a tool's result":    {`{"type":"TOOL_CALL_RESULT","toolCallId":"c","messageId":"t","content":` + long + `}`, "", false},
		"whole messages":     {`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"x","role":"assistant","content":` + long + `}]}`, "", false},
		"a text":             {`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":` + long + `}`, "", true},
		"a type at the end":  {`{"snapshot":` + long + `,"type":"STATE_SNAPSHOT"}`, "the agent's state is unknown: STATE_SNAPSHOT: the event is too long", false},
		"no type":            {`{"x":` + long + `}`, "", true},
		"details of 3 KB":    {`{"type":"CUSTOM","name":"x","value":"` + strings.Repeat("x", 3000) + `"}`, "", false},
		"a state of 5 KB":    {`{"type":"STATE_SNAPSHOT","snapshot":["` + strings.Repeat("x", 5000) + `"]}`, "the agent's state is unknown: STATE_SNAPSHOT: the document is larger than 4096 bytes", false},
		"many small details": {strings.Repeat(`{"type":"CUSTOM","name":"x","value":"`+strings.Repeat("x", 900)+`"}`+"\n\ndata: ", 7) + finished, "", false},
	} {
		config := remote.DefaultConfig()
		config.MaxBytes = 4 << 10
		if len(c.event) > 1<<20 {
			config.MaxBytes = 256 << 10
		}
		address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			agenttest.Stream(w, events(started, start, content, c.event, rest, end, finished))
		})
		emitted, err := agenttest.Run(t.Context(), newAgent(address, config, http.DefaultTransport), agenttest.Hello())
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if fault, ok := errors.AsType[*remote.Error](err); c.fails && (!ok || !fault.Flood()) {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(agenttest.Texts(emitted, stream.Warning), ""); got != c.warning {
			t.Errorf("%s: the warning %q", name, got)
		}
		bytes := 0
		for _, m := range emitted {
			if m.Type == stream.System {
				bytes += len(m.Details)
			}
		}
		if bytes > 2<<10 {
			t.Errorf("%s: %d bytes of details", name, bytes)
		}
	}
}

// TestToolCallWithoutAnswer proves that a run which ends with a tool call for its client, and with
// no text, fails unless the client has tools. Then the answer names the call.
func TestToolCallWithoutAnswer(t *testing.T) {
	called := []string{started, `{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"find"}`, `{"type":"TOOL_CALL_END","toolCallId":"c"}`}
	address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, events(append(called, finished)...)) })
	for tools, fails := range map[string]bool{`null`: true, `[ ]`: true, `[{"name":"find"}]`: false} {
		input := agenttest.Hello()
		input.Given.Tools = json.RawMessage(tools)
		emitted, err := agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), http.DefaultTransport), input)
		if !fails && (len(emitted) == 0 || string(emitted[len(emitted)-1].Details) != `{"toolCalls":[{"id":"c","type":"function","function":{"name":"find","arguments":""}}]}`) {
			t.Errorf("the answer is %+v", emitted)
		}
		fault, failed := errors.AsType[*remote.Error](err)
		if failed != fails || failed && (!fault.Permanent || !strings.Contains(fault.Error(), `"find"`)) {
			t.Errorf("with the tools %q: %v", tools, err)
		}
	}
	if _, err := run(t, append(called, start, content, end, finished)...); err != nil {
		t.Errorf("with a text: %v", err)
	}
}

// TestAnAnswerIsSentOnce checks that the answer to an interrupt is sent by one attempt alone, unless
// the server has certainly not taken it.
func TestAnAnswerIsSentOnce(t *testing.T) {
	asked := assembly.Resume{RunID: "run-0", Answered: true, Option: "approve", Details: []byte(`{"interrupts":[{"id":"i","reason":"confirmation"}]}`)}
	for name, c := range map[string]struct {
		status  int
		resume  assembly.Resume
		calls   int // of two attempts
		untaken int
	}{
		"a stream that breaks off": {http.StatusOK, asked, 1, 0},
		"a failure":                {http.StatusBadGateway, asked, 1, 0},
		"too many runs":            {http.StatusTooManyRequests, asked, 2, 2},
		"nobody has answered":      {http.StatusOK, assembly.Resume{RunID: "run-0", Details: asked.Details}, 2, 0},
	} {
		calls, untaken := 0, 0
		address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if calls++; c.status != http.StatusOK {
				w.WriteHeader(c.status)
				return
			}
			agenttest.Stream(w, events(started))
		})
		agent, input := newAgent(address, remote.DefaultConfig(), http.DefaultTransport), agenttest.Hello()
		input.Resume = &c.resume
		input.Take = func() error { input.Taken = true; return nil }
		input.Untake = func() error { input.Taken = false; untaken++; return nil }
		for range 2 {
			if _, err := agenttest.Run(t.Context(), agent, input); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
		if calls != c.calls || untaken != c.untaken {
			t.Errorf("%s: %d calls, %d times not taken", name, calls, untaken)
		}
	}
}

func TestInterrupt(t *testing.T) {
	emitted, err := run(t, started, start, content, end,
		`{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"confirmation","message":"Delete it?"}]}}`)
	if err != nil {
		t.Fatal(err)
	}
	want := stream.Message{
		Type: stream.RequestInput, Text: "Grüße, \n\nDelete it?", ActivityID: "run-1/answer",
		Details: []byte(`{"interrupts":[{"id":"i1","reason":"confirmation","message":"Delete it?"}],"ux":{"options":[{"id":"approve","label":"Approve"},{"id":"reject","label":"Reject"}]},"approval":true}`),
	}
	if diff := cmp.Diff(want, emitted[len(emitted)-1], cmpopts.IgnoreFields(stream.Message{}, "Time")); diff != "" {
		t.Error(diff)
	}
}

// TestOurTools lets the agent call a tool of Parley: the run that ends with the call goes on with a further one.
func TestOurTools(t *testing.T) {
	type object = map[string]any
	called := events(started, `{"type":"TEXT_MESSAGE_START","messageId":"t","role":"assistant"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"t","delta":"Let me look."}`, `{"type":"TEXT_MESSAGE_END","messageId":"t"}`,
		`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"look"}`, `{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"at\":1}"}`, `{"type":"TOOL_CALL_END","toolCallId":"c"}`, finished)
	ended := events(started, `{"type":"TEXT_MESSAGE_START","messageId":"u","role":"assistant"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"u","delta":"hi"}`, `{"type":"TEXT_MESSAGE_END","messageId":"u"}`, finished)
	bodies := agenttest.Loops(t, func(address string) turn.Agent {
		return newAgent(address, remote.DefaultConfig(), http.DefaultTransport)
	}, called, ended)
	want := []any{
		object{"id": "m1", "role": "user", "content": "[Olivia]: hi"},
		object{"id": "further-step-0-0", "role": "assistant", "content": "Let me look.", "toolCalls": []any{object{"id": "step00000", "type": "function", "function": object{"name": "look", "arguments": `{"at":1}`}}}},
		object{"id": "further-step-0-1", "role": "tool", "content": "seen", "toolCallId": "step00000"},
	}
	tools := []any{object{"name": "look", "description": "Looks.", "parameters": object{"type": "object", "properties": object{}}}}
	if diff := cmp.Diff([]any{want, tools, "run-1-2"}, []any{bodies[1]["messages"], bodies[1]["tools"], bodies[1]["runId"]}); diff != "" {
		t.Error(diff)
	}
}

// TestCards: the result of a run or of a tool has a card, its schema or hints for one, as the details of other agents have.
func TestCards(t *testing.T) {
	const (
		hints  = `{"status":"success","summary":"All plants have water."}`
		schema = `{"version":"1","title":"Plants","locale":"en","status":"success","theme":"default","root":{"type":"text","text":"All have water."}}`
	)
	result := func(raw string) string {
		return `{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":` + raw + `}`
	}
	tool := func(content string) []string {
		quoted, _ := json.Marshal(content)
		return []string{`{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"find"}`, `{"type":"TOOL_CALL_END","toolCallId":"c"}`,
			`{"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"c","content":` + string(quoted) + `}`, finished}
	}
	for name, c := range map[string]struct {
		in   []string
		want string // of the message with a card
	}{
		"a schema of a run":        {[]string{result(`{"uiSchema":` + schema + `,"n":1}`)}, "ANSWER uiSchema " + schema},
		"hints of a run":           {[]string{result(`{"ui_hints":` + hints + `}`)}, "ANSWER ui_hints " + hints},
		"nested hints of a run":    {[]string{result(`{"worker_agent_output":{"ui_hints":` + hints + `}}`)}, "ANSWER ui_hints " + hints},
		"a schema of a tool":       {tool(`{"uiSchema":` + schema + `}`), "UPDATE uiSchema " + schema},
		"nested hints of a tool":   {tool(`{"tool_agent_output":{"ui_hints":` + hints + `}}`), "UPDATE ui_hints " + hints},
		"a null schema":            {[]string{result(`{"uiSchema":null}`)}, ""},
		"words that name a schema": {tool(`the uiSchema is missing`), ""},
	} {
		emitted, err := run(t, append([]string{started, start, content, end}, c.in...)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, m := range emitted {
			var details map[string]json.RawMessage
			_ = json.Unmarshal(m.Details, &details)
			for _, key := range []string{card.SchemaKey, card.HintsKey} {
				if details[key] != nil {
					got = append(got, m.Type.String()+" "+key+" "+string(details[key]))
				}
			}
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUsageIsMeasured checks that the daemon learns the counts at the end of the run, also of one that asks people.
func TestUsageIsMeasured(t *testing.T) {
	const usage = `"usage":{"inputTokens":12,"outputTokens":3}}`
	for name, bodies := range map[string][]string{
		"an answer":  {started, start, content, end, `{"type":"RUN_FINISHED","threadId":"t","runId":"r",` + usage},
		"a question": {started, `{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"input_required","message":"Which bed?"}]},` + usage},
	} {
		address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, events(bodies...)) })
		var got assembly.Usage
		input := agenttest.Hello()
		input.Measure = func(u assembly.Usage) { got = u }
		if _, err := agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), http.DefaultTransport), input); err != nil || got.TokensIn != 12 || got.TokensOut != 3 {
			t.Errorf("%s: measured %+v, %v", name, got, err)
		}
	}
}
