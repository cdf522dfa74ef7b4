package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/openai"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/ingest/stream"
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
		want           []string // THOUGHT, WARNING, ANSWER, then each CALL with its arguments
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
			[]string{`CALL read {"limit":1}`, `CALL search {"query":"x"}`}, ""},
		{"Ollama, two calls in one chunk", data(part(calls(`{"index":0,"id":"a","function":{"name":"search","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"search","arguments":"{}"}}`)), toCall, done),
			[]string{`CALL search {}`, `CALL search {}`}, ""},
		{"a gateway without ids", data(part(calls(`{"index":0,"function":{"name":"search","arguments":"{\"q\":1}"}}`)), part(calls(`{"index":0,"function":{"name":"search","arguments":"{\"q\":2}"}}`)), toCall, done),
			[]string{`CALL search {"q":1}`, `CALL search {"q":2}`}, ""},
		{"a whole message with one index", data(`{"choices":[{"index":0,"message":{"content":null,"tool_calls":[{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"search","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, done),
			[]string{`CALL read {}`, `CALL search {}`}, ""},
		// https://github.com/ggml-org/llama.cpp/issues/13774
		{"llama.cpp, the name in each chunk", data(part(calls(`{"index":0,"id":"a","function":{"name":"search","arguments":"{\"query\":"}}`)), part(calls(`{"index":0,"id":"a","function":{"name":"search","arguments":"\"pump\""}}`)), part(calls(`{"index":0,"function":{"name":"search","arguments":"}"}}`)), toCall, done),
			[]string{`CALL search {"query":"pump"}`}, ""},
		{"a name in pieces, as the protocol allows", data(part(calls(`{"index":0,"id":"a","function":{"name":"sea","arguments":""}}`)), part(calls(`{"index":0,"function":{"name":"rch","arguments":"{}"}}`)), toCall, done), []string{`CALL search {}`}, ""},
		{"a first call with index 1", data(part(calls(`{"index":1,"id":"a","function":{"name":"read","arguments":"{}"}}`)), toCall, done), []string{`CALL read {}`}, ""},
		{"indices with a gap, interleaved", data(part(calls(`{"index":0,"id":"a","function":{"name":"read","arguments":"{\"a\""}}`, `{"index":3,"id":"b","function":{"name":"search","arguments":"{\"b\""}}`)), part(calls(`{"index":0,"function":{"arguments":":1}"}}`, `{"index":3,"function":{"arguments":":2}"}}`)), toCall, done),
			[]string{`CALL read {"a":1}`, `CALL search {"b":2}`}, ""},
		{"a custom tool", data(part(`{"content":"The pump hums."}`), part(calls(`{"index":0,"id":"a","type":"custom","custom":{"name":"shell","input":"ls"}}`)), stopped, done), []string{"ANSWER " + hums}, ""},
		{"an index and an id of other types", data(part(calls(`{"index":"0","id":7,"function":{"name":"read","arguments":"{"}}`)), part(`{"tool_calls":{"index":"0","function":{"arguments":"}"}}}`), toCall, done), []string{`CALL read {}`}, ""},
		{"a whole message repeats a call", data(part(calls(`{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}}`)), `{"choices":[{"index":0,"message":{"content":"","tool_calls":[{"id":"a","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, done), []string{`CALL read {}`}, ""},
		{"a namespace before the name", data(part(calls(`{"index":0,"id":"a","function":{"name":"functions.read","arguments":"{}"}}`)), toCall, done), []string{`CALL read {}`}, ""},

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
	var called []string
	input.Called = func(_ string, calls []runinput.Call, _ json.RawMessage) {
		for _, c := range calls {
			called = append(called, "CALL "+c.Name+" "+c.Arguments)
		}
	}
	emitted, err := agenttest.Run(t.Context(), agent, input)
	for _, m := range emitted {
		if m.Type != stream.StreamingChunk && m.Type != stream.Update {
			said = append(said, m.Type.String()+" "+m.Text)
		}
	}
	return append(said, called...), err
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

// TestThoughtsGoBackWithTheirCall checks that the request behind a call has the data that the provider wrote beside
// it, and that the same step of another model has none of this data.
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

// TestEndsOfServers checks what a server's word for the end of an answer means: it is whole, marked as cut off, or a
// failed attempt. The table of the package remote names the sources of the words.
func TestEndsOfServers(t *testing.T) {
	for words, want := range map[string]string{
		"stop tool_calls end_turn eos stop_sequence COMPLETE eos_token":                                                           "",
		"length max_tokens MAX_TOKENS model_length max_output_tokens LENGTH model_context_window_exceeded incomplete token_limit": "the model's length limit",
		"content_filter content-filter SAFETY PROHIBITED_CONTENT sensitive recitation guardrail_intervened":                       "content filter",
		"time_limit": "the server's time", "pause_turn": "paused it", "refusal": "declined to go on",
		"error network_error abort insufficient_system_resource MALFORMED_FUNCTION_CALL": "the server broke the answer off",
	} {
		for word := range strings.FieldsSeq(words) {
			agent := model(t, func(w http.ResponseWriter, _ *http.Request) { speak(w).delta(hums).finish(word).done() })
			emitted, err := run(t.Context(), agent)
			switch answer := strings.Join(texts(of(emitted, stream.Answer)), ""); {
			case strings.Contains(want, "broke"):
				if f := fault(t, err); f.Permanent || !strings.Contains(err.Error(), want) || answer != "" {
					t.Errorf("%s: %q, %v", word, answer, err)
				}
			case want == "":
				if err != nil || answer != hums {
					t.Errorf("%s: %q, %v", word, answer, err)
				}
			default:
				if err != nil || !strings.HasPrefix(answer, hums+"\n\n(The answer ends here because") || !strings.Contains(answer, want) || len(of(emitted, stream.Warning)) != 1 {
					t.Errorf("%s: %q, %v", word, answer, err)
				}
			}
		}
	}
}

// TestAnswersThatAreNone checks streams without an answer: a failure of MiniMax in the stream, and an answer that is
// in the reasoning alone, as vLLM with a wrong parser of reasoning sends it.
// https://github.com/vllm-project/vllm/issues/17357
func TestAnswersThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		stream    string
		permanent bool
		words     string
		sentence  string
	}{
		"MiniMax, no balance":      {data(part(pump), `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"},"choices":null}`, "[DONE]"), false, "the stream reports: insufficient balance", ""},
		"MiniMax, with choices":    {data(part(pump), `{"choices":[{"index":0,"delta":{}}],"base_resp":{"status_code":1002,"status_msg":"rate limit"}}`, "[DONE]"), false, "rate limit", ""},
		"reasoning alone":          {data(part(`{"reasoning_content":"The pump hums."}`), stopped, "[DONE]"), false, `no text (finish_reason "stop"), but a reasoning`, ""},
		"reasoning alone, cut off": {data(part(`{"reasoning_content":"The pump"}`), `{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`, "[DONE]"), true, "but a reasoning", "Sorry, my answer did not fit into the model's length limit."},
		"nothing at all":           {data(stopped, "[DONE]"), false, `no text (finish_reason "stop")`, ""},
	} {
		agent := model(t, func(w http.ResponseWriter, _ *http.Request) { speak(w).raw(c.stream) })
		_, err := run(t.Context(), agent)
		if f := fault(t, err); f.Permanent != c.permanent || f.Sentence() != c.sentence || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: permanent %v, %q, %v", name, f.Permanent, f.Sentence(), err)
		}
	}
}

// afterACall returns the input of a run whose first step called a tool, without what its provider wants back.
func afterACall() assembly.Input {
	input := hello()
	input.Tools = []runinput.Tool{{Name: "look", Parameters: json.RawMessage(`{}`)}}
	input.Called, input.Step = func(string, []runinput.Call, json.RawMessage) {}, 1
	input.Messages = assembly.AddStep(input.Messages, 0, assembly.Step{Calls: []runinput.Call{{Name: "look", Arguments: "{}"}}, Results: []string{"seen"}})
	return input
}

// TestAPassingFaultTeachesNothing checks that a timeout, a bad call of the model and their like are failed attempts:
// the next request is in the same form.
func TestAPassingFaultTeachesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		words  string
	}{
		"a timeout behind a gateway": {500, `{"error":{"message":"upstream function timed out, try again later","type":"server_error"}}`},
		// https://github.com/ggml-org/llama.cpp/blob/master/common/chat.cpp
		"llama.cpp, a bad call": {500, `{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value - unexpected end of input","type":"server_error"}}`},
		"Ollama, a bad call":    {500, `{"error":{"message":"error parsing tool call: raw='{\"a\"', err=unexpected end of JSON input","type":"api_error"}}`},
		// https://console.groq.com/docs/tool-use
		"Groq, a bad call":       {400, `{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=look"}}`},
		"Groq, in a stream":      {200, `{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed","status_code":400}}`},
		"llama.cpp, in a stream": {200, `{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON: unexpected end of input"}}`},
	} {
		for step, input := range map[string]assembly.Input{"the first request": hello(), "behind a call": afterACall()} {
			input.Tools = afterACall().Tools
			input.Called = func(string, []runinput.Call, json.RawMessage) {}
			requests := 0
			agent := model(t, func(w http.ResponseWriter, _ *http.Request) {
				if requests++; requests > 1 {
					http.Error(w, "a second request", http.StatusTeapot)
					return
				}
				if c.status != 200 {
					http.Error(w, c.words, c.status)
					return
				}
				speak(w).raw("data: " + c.words + "\n\n")
			})
			_, err := agenttest.Run(t.Context(), agent, input)
			if f := fault(t, err); f.Permanent || requests != 1 || len(agent.Learnt()) > 0 {
				t.Errorf("%s, %s: permanent %v, %d requests, learnt %q, %v", name, step, f.Permanent, requests, agent.Learnt(), err)
			}
		}
	}
}

// TestCallsOfAnotherModel checks a provider that refuses calls without the thoughts before them, which Parley does not
// have: this run's calls become texts, and nothing is learnt.
func TestCallsOfAnotherModel(t *testing.T) {
	for server, words := range map[string]string{
		"DeepSeek":  "The `reasoning_content` in the thinking mode must be passed back to the API.",
		"Kimi":      "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
		"Gemini":    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance.",
		"Anthropic": "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
	} {
		var bodies []string
		agent := model(t, func(w http.ResponseWriter, r *http.Request) {
			var body struct{ Messages, Tools json.RawMessage }
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			if bodies = append(bodies, string(body.Messages)); strings.Contains(string(body.Messages), "tool_calls") {
				raw, _ := json.Marshal(object{"error": object{"message": words, "type": "invalid_request_error"}})
				http.Error(w, string(raw), 400)
				return
			}
			if body.Tools == nil {
				t.Errorf("%s: no tools are offered", server)
			}
			speak(w).delta("Yes.").finish("stop").done()
		})
		emitted, err := agenttest.Run(t.Context(), agent, afterACall())
		if err != nil || len(bodies) != 2 || len(agent.Learnt()) > 0 || !strings.Contains(bodies[1], "[Result of the tool look]: seen") || len(of(emitted, stream.Answer)) != 1 {
			t.Errorf("%s: %q, learnt %q, %v", server, bodies, agent.Learnt(), err)
		}
	}
}

// TestAServerThatKnowsNoReasoning checks a server that refuses the reasoning which another has written for the model.
func TestAServerThatKnowsNoReasoning(t *testing.T) {
	requests := 0
	agent := model(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if requests++; strings.Contains(string(raw), "reasoning_content") {
			http.Error(w, `{"error":{"message":"Unknown parameter: 'messages[1].reasoning_content'.","type":"invalid_request_error"}}`, 400)
			return
		}
		speak(w).delta("Yes.").finish("stop").done()
	})
	input := afterACall()
	input.Messages[1].Kept = json.RawMessage(`{"model":"openai llama3.2","said":{"reasoning_content":"Hm."}}`)
	if _, err := agenttest.Run(t.Context(), agent, input); err != nil || requests != 2 || len(agent.Learnt()) != 1 {
		t.Errorf("%d requests, learnt %q, %v", requests, agent.Learnt(), err)
	}
}

// TestFormsAreForgotten checks that a learnt form has a time, which the notes tell, and that the server is asked again
// after it: a day after a refusal, an hour after a fault.
func TestFormsAreForgotten(t *testing.T) {
	for status, age := range map[int]time.Duration{400: 24 * time.Hour, 500: time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var forms []string
			agent := bubbled(t, nil, strictServer(func(s sent) (int, string) {
				if forms = append(forms, strings.Join(s.roles(), " ")); !alternates(s.roles()) {
					return status, `{"error":{"message":"Conversation roles must alternate user/assistant/user/assistant/..."}}`
				}
				return 0, ""
			}, new(int)))
			ask := func() string {
				input, _ := thread(1)
				if _, err := answerOf(t, agent, input); err != nil {
					t.Fatal(err)
				}
				asked := len(forms)
				forms = nil
				return fmt.Sprintf("%d%v", asked, agent.Learnt())
			}
			since := time.Now()
			want := fmt.Sprintf("[messages are in strict form (since %s, until %s)]", since.UTC().Format(time.RFC3339), since.Add(age).UTC().Format(time.RFC3339))
			if got := ask(); got != "2"+want {
				t.Errorf("%d: %s, want 2%s", status, got, want)
			}
			time.Sleep(age - time.Minute)
			if got := ask(); got != "1"+want {
				t.Errorf("%d: %s, want 1%s", status, got, want)
			}
			time.Sleep(time.Minute)
			if notes := agent.Learnt(); len(notes) > 0 {
				t.Errorf("%d: after its time: %q", status, notes)
			}
			if got := ask(); got[0] != '2' {
				t.Errorf("%d: after its time: %s", status, got)
			}
		})
	}
}
