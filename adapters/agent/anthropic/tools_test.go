package anthropic_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/anthropic"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/turn"
)

// functions returns an agent that offers a client's tools as functions.
func functions(address string) turn.Agent {
	config := anthropic.DefaultConfig()
	config.BaseURL, config.Model, config.ClientTools = address, "claude", agenttest.ClientTools
	return anthropic.New(config, nil, http.DefaultTransport)
}

// TestCallsAndResults checks the blocks of a client's call and its result, and its tools.
func TestCallsAndResults(t *testing.T) {
	type object = map[string]any
	answer := events(start, block, one, end, stop)
	input := func(more string) func(turn.Agent) assembly.Input {
		return func(agent turn.Agent) assembly.Input { return agenttest.Talks(t, agent.(turn.TakesGiven), more) }
	}
	called := object{"role": "assistant", "content": []any{
		object{"type": "text", "text": "Let me see."}, object{"type": "tool_use", "id": "c1", "name": "f", "input": object{"a": 1.0}},
	}}
	result := object{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}

	body := agenttest.Sent(t, func(address string) turn.Agent {
		return newAgent(address, remote.DefaultConfig(), http.DefaultTransport)
	}, input(""), answer)
	messages := body["messages"].([]any)
	if text := messages[0].(object)["content"].(string); !strings.HasPrefix(text, "<!-- TOOLS_START -->") || !strings.HasSuffix(text, "\n[Olivia]: hi") {
		t.Errorf("the question is %q", text)
	}
	want := []any{[]any{called, object{"role": "user", "content": []any{result}}}, []any{object{"name": "f", "input_schema": object{"type": "object"}}}, object{"type": "none"}}
	if diff := cmp.Diff(want, []any{messages[1:], body["tools"], body["tool_choice"]}); diff != "" {
		t.Error(diff)
	}

	body = agenttest.Sent(t, functions, input(`,{"id":"b","role":"assistant","content":"It was ok."}`), answer)
	want = []any{
		[]any{object{"role": "user", "content": "[Olivia]: hi"}, called, object{"role": "user", "content": []any{result, object{"type": "text", "text": "[The assistant so far]: It was ok."}}}},
		[]any{
			object{"name": runinput.Safe("get weather"), "description": "d", "input_schema": object{"type": "object", "properties": object{"city": object{}}}},
			object{"name": "f", "input_schema": object{"type": "object", "properties": object{}}},
		}, nil,
	}
	if diff := cmp.Diff(want, []any{body["messages"], body["tools"], body["tool_choice"]}); diff != "" {
		t.Error(diff)
	}
}

// TestACallEndsTheRun checks that the answer of a model that calls a client's tool names the call.
func TestACallEndsTheRun(t *testing.T) {
	answer := events(start, `{"type":"content_block_start","content_block":{"type":"tool_use","id":"c","name":"f"}}`,
		`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"a\":2}"}}`, end, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, stop)
	address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, answer) })
	agent := functions(address)
	emitted, err := agenttest.Run(t.Context(), agent, agenttest.Talks(t, agent.(turn.TakesGiven), ""))
	const want = `{"toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":2}"}}],"usage":{"input_tokens":3,"output_tokens":1}}`
	if err != nil || string(emitted[len(emitted)-1].Details) != want {
		t.Errorf("%v\n%+v", err, emitted)
	}
}

// TestOurTools lets the model call a tool of Parley.
func TestOurTools(t *testing.T) {
	type object = map[string]any
	called := events(start, block, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"Let me look."}}`, `{"type":"content_block_stop"}`,
		`{"type":"content_block_start","content_block":{"type":"tool_use","id":"c1","name":"look"}}`,
		`{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"at\":1}"}}`, end, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, stop)
	ended := events(start, block, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"hi"}}`, end, stop)
	bodies := agenttest.Loops(t, func(address string) turn.Agent {
		return newAgent(address, remote.DefaultConfig(), http.DefaultTransport)
	}, called, ended)
	want := []any{
		object{"role": "user", "content": "[Olivia]: hi"},
		object{"role": "assistant", "content": []any{object{"type": "text", "text": "Let me look."}, object{"type": "tool_use", "id": "step00000", "name": "look", "input": object{"at": 1.0}}}},
		object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "step00000", "content": "seen"}}},
	}
	tools := []any{object{"name": "look", "description": "Looks.", "input_schema": object{"type": "object", "properties": object{}}}}
	if diff := cmp.Diff([]any{want, tools, nil}, []any{bodies[1]["messages"], bodies[1]["tools"], bodies[1]["tool_choice"]}); diff != "" {
		t.Error(diff)
	}
}
