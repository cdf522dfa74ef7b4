package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/openai"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/ingest/stream"
)

const spoken = `data: {"choices":[{"delta":{"content":"hi"}}]}` + "\n\ndata: [DONE]\n\n"

// functions returns an agent that offers a client's tools as functions.
func functions(address string) turn.Agent {
	settings := config(address)
	settings.ClientTools = agenttest.ClientTools
	return openai.New(settings, nil, nil)
}

// TestCallsAndResults checks the form of a client's call and its result, and of its tools.
func TestCallsAndResults(t *testing.T) {
	input := func(agent turn.Agent) assembly.Input { return agenttest.Talks(t, agent.(turn.TakesGiven), "") }
	talk := []any{
		object{"role": "user", "content": "[Olivia]: hi"},
		object{"role": "assistant", "content": "Let me see.", "tool_calls": []any{object{"id": "c1", "type": "function", "function": object{"name": "f", "arguments": `{"a":1}`}}}},
		object{"role": "tool", "content": "ok", "tool_call_id": "c1"},
	}
	body := agenttest.Sent(t, func(address string) turn.Agent { return openai.New(config(address), nil, nil) }, input, spoken)
	messages := body["messages"].([]any)
	if block := messages[0].(object); block["role"] != "system" || !strings.HasPrefix(block["content"].(string), "<!-- TOOLS_START -->\n- get weather: d\n") || body["tools"] != nil {
		t.Errorf("the tools are %v and %v", block, body["tools"])
	}
	if diff := cmp.Diff(talk, messages[1:]); diff != "" {
		t.Error(diff)
	}

	body = agenttest.Sent(t, functions, input, spoken)
	function := func(name, description string, parameters object) any {
		return object{"type": "function", "function": object{"name": name, "description": description, "parameters": parameters}}
	}
	want := []any{
		function(runinput.Safe("get weather"), "d", object{"type": "object", "properties": object{"city": object{}}}),
		function("f", "", object{"type": "object", "properties": object{}}),
	}
	if diff := cmp.Diff([]any{talk, want}, []any{body["messages"], body["tools"]}); diff != "" {
		t.Error(diff)
	}
}

// TestAServerWithoutTools gets calls and results as texts, with one request more.
func TestAServerWithoutTools(t *testing.T) {
	for name, words := range map[string]string{
		"alternation": "Conversation roles must alternate user/assistant/user/assistant/...",
		"no tools":    "this model does not support tools",
	} {
		asked, got := 0, sent{}
		agent := model(t, strictServer(func(s sent) (int, string) {
			got = s
			if !alternates(s.roles()) {
				return 400, fmt.Sprintf(`{"error":{"message":%q}}`, words)
			}
			return 0, ""
		}, &asked))
		input := agenttest.Talks(t, agent, `,{"id":"b","role":"assistant","content":"It was ok."}`)
		if _, err := agenttest.Run(t.Context(), agent, input); err != nil || asked != 2 {
			t.Errorf("%s: %d requests, %v", name, asked, err)
		}
		var texts []string
		for _, m := range got.Messages {
			var text string
			_ = json.Unmarshal(m.Content, &text)
			texts = append(texts, m.Role+" "+text)
		}
		want := []string{"assistant Let me see.\n[Call of the tool f]: {\"a\":1}", "user [Result of the tool f]: ok\n\n[The assistant so far]: It was ok."}
		if diff := cmp.Diff(want, texts[len(texts)-2:]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestAServerWithoutFunctions gets the tools as a block of text, with one request more in the process.
func TestAServerWithoutFunctions(t *testing.T) {
	for _, words := range []string{"registry.ollama.ai/library/gemma3:4b does not support tools", `\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set`, "Unrecognized request argument supplied: tools",
		"tools param requires --jinja flag", "No endpoints found that support tool use.", "Function calling is not enabled for this model"} {
		var bodies []map[string]any
		address := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			if bodies = append(bodies, body); body["tools"] != nil {
				http.Error(w, `{"error":{"message":"`+words+`"}}`, http.StatusBadRequest)
				return
			}
			agenttest.Stream(w, spoken)
		})
		agent := functions(address)
		for range 2 {
			if _, err := agenttest.Run(t.Context(), agent, agenttest.Talks(t, agent.(turn.TakesGiven), "")); err != nil {
				t.Errorf("%s: %v", words, err)
			}
		}
		if _, err := agenttest.Run(t.Context(), agent, agenttest.Hello()); err != nil || len(bodies) != 4 {
			t.Fatalf("%s: %d requests, %v", words, len(bodies), err)
		}
		for i, want := range []int{3, 4, 4, 1} {
			messages := bodies[i]["messages"].([]any)
			if first := messages[0].(object)["content"].(string); len(messages) != want || strings.HasPrefix(first, "<!-- TOOLS_START -->") != (want == 4) {
				t.Errorf("%s: the request %d has %v", words, i, messages)
			}
		}
	}
}

// TestACallEndsTheRun checks the answer of a model that calls a client's tool, and of one that calls another.
func TestACallEndsTheRun(t *testing.T) {
	tool := runinput.Safe("get weather")
	call := func(name string) string {
		return `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c7","function":{"name":"` + name + `","arguments":"{\"city\":\"Rome\"}"}},{"index":1,"function":{"name":"` + name + `","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	}
	for name, c := range map[string]struct {
		answer string
		want   []stream.Message
		fault  string
	}{
		"a tool of the client": {call(tool), []stream.Message{
			{Type: stream.Update, Text: "get weather", Details: []byte(`{"arguments":"{\"city\":\"Rome\"}","tool":"get weather","tool_event":"started","tool_use_id":"c7"}`)},
			{Type: stream.Update, Text: "get weather", Details: []byte(`{"arguments":"{}","tool":"get weather","tool_event":"started","tool_use_id":"call_2"}`)},
			{Type: stream.Answer, Details: []byte(`{"toolCalls":[{"id":"c7","type":"function","function":{"name":"get weather","arguments":"{\"city\":\"Rome\"}"}},{"id":"call_2","type":"function","function":{"name":"get weather","arguments":"{}"}}]}`)},
		}, ""},
		"another tool":      {call("find"), nil, `the tool "find"`},
		"an unfinished one": {strings.Replace(call(tool), `"finish_reason":"tool_calls"`, `"finish_reason":"length"`, 1), nil, "no text"},
	} {
		address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, c.answer) })
		agent := functions(address)
		emitted, err := agenttest.Run(t.Context(), agent, agenttest.Talks(t, agent.(turn.TakesGiven), ""))
		if c.fault != "" {
			if fault, ok := err.(*remote.Error); !ok || !strings.Contains(fault.Error(), c.fault) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		emitted = slices.DeleteFunc(emitted, func(m stream.Message) bool { return m.Type == stream.StreamingChunk })
		if diff := cmp.Diff(c.want, emitted, cmpopts.IgnoreFields(stream.Message{}, "Time", "ActivityID")); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// TestOurTools lets the model call a tool of Parley.
func TestOurTools(t *testing.T) {
	called := `data: {"choices":[{"delta":{"content":"Let me look.","tool_calls":[{"index":0,"id":"c1","function":{"name":"look","arguments":"{\"at\":1}"}}]}}]}` + "\n\n" +
		`data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	bodies := agenttest.Loops(t, func(address string) turn.Agent { return openai.New(config(address), nil, nil) }, called, spoken)
	want := []any{
		object{"role": "user", "content": "[Olivia]: hi"},
		object{"role": "assistant", "content": "Let me look.", "tool_calls": []any{object{"id": "step00000", "type": "function", "function": object{"name": "look", "arguments": `{"at":1}`}}}},
		object{"role": "tool", "content": "seen", "tool_call_id": "step00000"},
	}
	if diff := cmp.Diff(want, bodies[1]["messages"]); diff != "" {
		t.Error(diff)
	}
	tools := []any{object{"type": "function", "function": object{"name": "look", "description": "Looks.", "parameters": object{"type": "object", "properties": object{}}}}}
	if diff := cmp.Diff([]any{tools, tools}, []any{bodies[0]["tools"], bodies[1]["tools"]}); diff != "" {
		t.Error(diff)
	}
}
