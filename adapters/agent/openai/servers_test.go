package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/openai"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/stream"
	"parley/assembly/turn"
)

// data returns the events of a stream, each with the JSON of a chunk.
func data(chunks ...string) string { return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\n" }

// part returns a chunk with a delta, and with further members of the choice.
func part(delta string, more ...string) string {
	return `{"object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + strings.Join(append([]string{""}, more...), ",") + `}]}`
}

// calls returns a delta with tool calls, each as the server writes it.
func calls(list ...string) string { return `{"tool_calls":[` + strings.Join(list, ",") + `]}` }

const (
	stopped = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	toCall  = `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	hums    = "The pump hums."
	pump    = `{"content":"The pump "}`
	rest    = `{"content":"hums."}`
)

// TestStreamsOfServers reads the streams of servers as they write them: the text of the answer, the thoughts and the
// calls, or the words of the failure.
func TestStreamsOfServers(t *testing.T) {
	const done = "[DONE]"
	for _, c := range []struct {
		server, stream string
		want           []string // THOUGHT, UPDATE with its arguments, WARNING, ANSWER
		fault          string
	}{
		// A whole message behind the parts. https://github.com/ENTERPILOT/GoModel/pull/1068 shows MiniMax's.
		{"MiniMax, a chat.completion at the end", data(part(pump), part(rest), `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"The pump hums."},"finish_reason":"stop"}],"usage":{"total_tokens":9},"base_resp":{"status_code":0,"status_msg":""}}`, done),
			[]string{"ANSWER " + hums}, ""},
		{"MiniMax, with its reasoning", data(part(`{"reasoning_content":"Hm."}`), part(pump), part(rest), `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"Hm.","content":"The pump hums."},"finish_reason":"stop"}]}`, done),
			[]string{"THOUGHT Hm.", "ANSWER " + hums}, ""},
		{"a gateway whose message says more than its parts", data(part(`{"content":"<think>Hm.</think>The pump "}`), `{"choices":[{"index":0,"message":{"content":"<think>Hm.</think>The pump hums."},"finish_reason":"stop"}]}`, done),
			[]string{"THOUGHT Hm.", "ANSWER " + hums}, ""},
		{"a delta and its message in one chunk", data(`{"choices":[{"index":0,"delta":{"content":"The pump "},"message":{"content":"The pump "}}]}`, `{"choices":[{"index":0,"delta":{"content":"hums."},"message":{"content":"The pump hums."},"finish_reason":"stop"}]}`, done),
			[]string{"ANSWER " + hums}, ""},
		{"an empty message at the end", data(part(pump), part(rest), `{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}`, done), []string{"ANSWER " + hums}, ""},
		{"a message alone", data(`{"choices":[{"index":0,"message":{"role":"assistant","content":"The pump hums."},"finish_reason":"stop"}]}`, done), []string{"ANSWER " + hums}, ""},
		{"parts that are equal", data(part(`{"content":"ha"}`), part(`{"content":"ha"}`), stopped, done), []string{"ANSWER haha"}, ""},

		// Parallel calls with one index. https://github.com/ollama/ollama/issues/15457
		{"Ollama, two calls in two chunks", data(part(calls(`{"index":0,"id":"call_a1","type":"function","function":{"name":"read","arguments":"{\"limit\":1}"}}`)), part(calls(`{"index":0,"id":"call_b2","type":"function","function":{"name":"search","arguments":"{\"query\":\"x\"}"}}`)), toCall, done),
			[]string{`UPDATE read {"limit":1}`, `UPDATE search {"query":"x"}`}, ""},
		{"Ollama, two calls in one chunk", data(part(calls(`{"index":0,"id":"a","function":{"name":"search","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"search","arguments":"{}"}}`)), toCall, done),
			[]string{`UPDATE search {}`, `UPDATE search {}`}, ""},
		{"a gateway without ids", data(part(calls(`{"index":0,"function":{"name":"search","arguments":"{\"q\":1}"}}`)), part(calls(`{"index":0,"function":{"name":"search","arguments":"{\"q\":2}"}}`)), toCall, done),
			[]string{`UPDATE search {"q":1}`, `UPDATE search {"q":2}`}, ""},
		{"a whole message with one index", data(`{"choices":[{"index":0,"message":{"content":null,"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"search","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, done),
			[]string{`UPDATE read {}`, `UPDATE search {}`}, ""},
		// https://github.com/ggml-org/llama.cpp/issues/13774
		{"llama.cpp, the name in each chunk", data(part(calls(`{"index":0,"id":"a","function":{"name":"search","arguments":"{\"query\":"}}`)), part(calls(`{"index":0,"id":"a","function":{"name":"search","arguments":"\"pump\""}}`)), part(calls(`{"index":0,"function":{"name":"search","arguments":"}"}}`)), toCall, done),
			[]string{`UPDATE search {"query":"pump"}`}, ""},
		{"a name in pieces, as the protocol allows", data(part(calls(`{"index":0,"id":"a","function":{"name":"sea","arguments":""}}`)), part(calls(`{"index":0,"function":{"name":"rch","arguments":"{}"}}`)), toCall, done), []string{`UPDATE search {}`}, ""},
		{"a first call with index 1", data(part(calls(`{"index":1,"id":"a","function":{"name":"read","arguments":"{}"}}`)), toCall, done), []string{`UPDATE read {}`}, ""},
		{"indices with a gap, interleaved", data(part(calls(`{"index":0,"id":"a","function":{"name":"read","arguments":"{\"a\""}}`, `{"index":3,"id":"b","function":{"name":"search","arguments":"{\"b\""}}`)), part(calls(`{"index":0,"function":{"arguments":":1}"}}`, `{"index":3,"function":{"arguments":":2}"}}`)), toCall, done),
			[]string{`UPDATE read {"a":1}`, `UPDATE search {"b":2}`}, ""},
		{"a custom tool", data(part(`{"content":"The pump hums."}`), part(calls(`{"index":0,"id":"a","type":"custom","custom":{"name":"shell","input":"ls"}}`)), stopped, done), []string{"ANSWER " + hums}, ""},
		{"an index and an id of other types", data(part(calls(`{"index":"0","id":7,"function":{"name":"read","arguments":"{"}}`)), part(`{"tool_calls":{"index":"0","function":{"arguments":"}"}}}`), toCall, done), []string{`UPDATE read {}`}, ""},
		{"a whole message repeats a call", data(part(calls(`{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}}`)), `{"choices":[{"index":0,"message":{"content":"","tool_calls":[{"id":"a","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, done), []string{`UPDATE read {}`}, ""},
		{"a namespace before the name", data(part(calls(`{"index":0,"id":"a","function":{"name":"functions.read","arguments":"{}"}}`)), toCall, done), []string{`UPDATE read {}`}, ""},

		// The end mark and the events around it.
		{"white space around the end mark", data(part(pump), part(rest), stopped, " [DONE] "), []string{"ANSWER " + hums}, ""},
		{"an end mark alone with white space", data(part(pump), part(rest), "[DONE]\t"), []string{"ANSWER " + hums}, ""},
		{"an error behind the end", data(part(pump), part(rest), stopped, `{"error":{"message":"client disconnected"}}`, done), []string{"ANSWER " + hums}, ""},
		{"noise behind the end", data(part(pump), part(rest), stopped, `bye`, done), []string{"ANSWER " + hums}, ""},
		{"a blank event", data(part(pump), " ", part(rest), stopped, done), []string{"ANSWER " + hums}, ""},
		{"a ping with a text", "event: ping\ndata: still here\n\n" + data(part(pump), part(rest), stopped, done), []string{"ANSWER " + hums}, ""},
		{"words behind the finish", data(part(pump), stopped, part(rest), done), []string{"ANSWER " + hums}, ""},
		{"an error before the end", data(part(pump), `{"error":{"message":"gone"}}`, done), nil, "the stream reports: gone"},
		{"an event error with a text", "event: error\ndata: gone\n\n", nil, "invalid chunk"},
	} {
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) { speak(w).raw(c.stream) })
		got, err := heard(t, agent)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v", c.server, err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", c.server, err, diff)
		}
	}
}

// heard returns what an agent with the tools read and search says, without chunks.
func heard(t *testing.T, agent *openai.Agent) (said []string, err error) {
	t.Helper()
	input := hello()
	input.Tools = []runinput.Tool{{Name: "read", Parameters: json.RawMessage(`{}`)}, {Name: "search", Parameters: json.RawMessage(`{}`)}}
	input.Called = func(string, []runinput.Call, json.RawMessage) {}
	emitted, err := agenttest.Run(t.Context(), agent, input)
	for _, m := range emitted {
		switch m.Type {
		case stream.StreamingChunk:
		case stream.Update:
			var details struct{ Arguments string }
			if err := json.Unmarshal(m.Details, &details); err != nil {
				t.Error(err)
			}
			said = append(said, "UPDATE "+m.Text+" "+details.Arguments)
		default:
			said = append(said, m.Type.String()+" "+m.Text)
		}
	}
	return said, err
}

// TestAPreviewOfARepeatedAnswer checks that the chunks of a text that comes again are not emitted again.
func TestAPreviewOfARepeatedAnswer(t *testing.T) {
	agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
		speak(w).raw(data(part(pump), part(rest), `{"object":"chat.completion","choices":[{"index":0,"message":{"content":"The pump hums."},"finish_reason":"stop"}]}`)).done()
	})
	emitted, err := run(t.Context(), agent)
	if got := strings.Join(texts(of(emitted, stream.StreamingChunk)), ""); err != nil || got != hums {
		t.Errorf("the chunks are %q, %v", got, err)
	}
}

// TestThoughtsGoBackWithTheirCall checks that the request behind a call has what the provider wrote beside it, and that
// the same step of another model has nothing of it.
func TestThoughtsGoBackWithTheirCall(t *testing.T) {
	const look = `{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}`
	words := part(`{"content":"Let me look."}`)
	for server, c := range map[string]struct {
		stream string
		want   object // further members of the assistant's message
		extra  any    // of the call
	}{
		// https://api-docs.deepseek.com/guides/thinking_mode
		"DeepSeek": {data(part(`{"role":"assistant","content":null,"reasoning_content":"The user wants "}`), part(`{"reasoning_content":"the thread."}`), words, part(calls(look+"}")), toCall, "[DONE]"),
			object{"reasoning_content": "The user wants the thread."}, nil},
		"DeepSeek, nothing thought": {data(part(`{"role":"assistant","content":null,"reasoning_content":""}`), words, part(calls(look+"}")), toCall, "[DONE]"), object{"reasoning_content": ""}, nil},
		"Kimi":                      {data(part(`{"reasoning_content":"Hm."}`), words, `{"choices":[{"index":0,"message":{"reasoning_content":"Hm.","content":"Let me look.","tool_calls":[`+look+`}]},"finish_reason":"tool_calls"}]}`, "[DONE]"), object{"reasoning_content": "Hm."}, nil},
		// https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
		"OpenRouter": {data(part(`{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm","format":"anthropic-claude-v1","index":0}]}`), part(`{"reasoning":".","reasoning_details":[{"type":"reasoning.text","text":".","format":"anthropic-claude-v1","index":0}]}`),
			part(`{"reasoning_details":[{"type":"reasoning.text","signature":"c2ln","index":0},{"type":"reasoning.encrypted","data":"ZW5j","index":1}]}`), words, part(calls(look+"}")), toCall, "[DONE]"),
			object{"reasoning": "Hm.", "reasoning_details": []any{object{"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": "anthropic-claude-v1", "index": 0.0}, object{"type": "reasoning.encrypted", "data": "ZW5j", "index": 1.0}}}, nil},
		// https://ai.google.dev/gemini-api/docs/thought-signatures
		"Gemini":            {data(words, part(calls(look+`,"extra_content":{"google":{"thought_signature":"c2ln"}}}`)), toCall, "[DONE]"), object{}, object{"google": object{"thought_signature": "c2ln"}}},
		"a server of words": {data(words, part(calls(look+"}")), toCall, "[DONE]"), object{}, nil},
	} {
		bodies := agenttest.Loops(t, func(address string) turn.Agent { return openai.New(config(address), nil, nil) }, c.stream, spoken)
		call := object{"id": "step00000", "type": "function", "function": object{"name": "look", "arguments": `{"at":1}`}}
		if c.extra != nil {
			call["extra_content"] = c.extra
		}
		want := object{"role": "assistant", "content": "Let me look.", "tool_calls": []any{call}}
		for name, value := range c.want {
			want[name] = value
		}
		if diff := cmp.Diff(any(want), bodies[1]["messages"].([]any)[1]); diff != "" {
			t.Errorf("%s: %s", server, diff)
		}
	}
}

// TestEveryStepHasItsReasoning checks that a step without reasoning has an empty one, if another step of the run has one,
// and that another model gets none.
func TestEveryStepHasItsReasoning(t *testing.T) {
	step := func(n int, kept string) assembly.Step {
		s := assembly.Step{Calls: []runinput.Call{{Name: "look", Arguments: "{}"}}, Results: []string{fmt.Sprint("seen ", n)}}
		if kept != "" {
			s.Kept = json.RawMessage(kept)
		}
		return s
	}
	input := hello()
	input.Messages = assembly.AddStep(input.Messages, 0, step(0, `{"model":"openai llama3.2","said":{"reasoning_content":"Hm."}}`))
	input.Messages = assembly.AddStep(input.Messages, 1, step(1, ""))
	for name, want := range map[string][]any{"llama3.2": {"Hm.", ""}, "other": {nil, nil}} {
		var got []any
		address := agenttest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			var body struct{ Messages []object }
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			for _, m := range body.Messages {
				if m["role"] == "assistant" {
					got = append(got, m["reasoning_content"])
				}
			}
			agenttest.Stream(w, spoken)
		})
		settings := config(address)
		settings.Model = name
		if _, err := agenttest.Run(t.Context(), openai.New(settings, nil, nil), input); err != nil || !slices.Equal(want, got) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
