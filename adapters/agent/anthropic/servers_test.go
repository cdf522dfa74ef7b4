package anthropic_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/ingest/stream"
)

const hums = "The pump hums."

// TestStreamsOfServers reads the streams of servers as they write them: the thoughts, the calls with their arguments, and
// the answer.
func TestStreamsOfServers(t *testing.T) {
	const (
		pump    = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"The pump "}}`
		rest    = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hums."}}`
		whole   = `{"type":"message","role":"assistant","content":[{"type":"text","text":"The pump hums."}]}`
		toolUse = `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`
	)
	begin := func(content string) string {
		return `{"type":"content_block_start","index":0,"content_block":` + content + `}`
	}
	input := func(part string) string {
		quoted, _ := json.Marshal(part)
		return `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + string(quoted) + `}}`
	}
	for _, c := range []struct {
		server string
		in     []string
		want   []string
		fault  string
	}{
		// https://github.com/songquanpeng/one-api/issues/2406
		{"MiniMax, a message behind its blocks", []string{start, block, pump, rest, end, whole, stop}, []string{"ANSWER " + hums}, ""},
		{"MiniMax, with a thought", []string{start, begin(`{"type":"thinking","thinking":""}`), `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm."}}`, end, block, pump, rest, end,
			`{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"The pump hums."}],"stop_reason":"end_turn"}`, stop}, []string{"THOUGHT Hm.", "ANSWER " + hums}, ""},
		{"a message alone", []string{whole, stop}, []string{"ANSWER " + hums}, ""},
		// https://github.com/cline/cline/pull/9215
		{"a gateway that repeats the start", []string{start, begin(`{"type":"text","text":"The pump "}`), pump, rest, end, delta, stop}, []string{"ANSWER " + hums}, ""},
		{"a start that the deltas go on with", []string{start, begin(`{"type":"text","text":"The pump "}`), rest, end, delta, stop}, []string{"ANSWER " + hums}, ""},
		{"equal deltas", []string{start, block, rest, rest, end, delta, stop}, []string{"ANSWER hums.hums."}, ""},
		{"no start", []string{start, pump, rest, end, delta, stop}, []string{"ANSWER " + hums}, ""},

		// https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool
		{"a tool that the server has run", []string{start, begin(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`), input(`{"query":"pump"}`), end,
			begin(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`), end, block, pump, rest, end, delta, stop}, []string{`UPDATE web_search {"query":"pump"}`, "ANSWER " + hums}, ""},
		{"a tool of ours behind it", []string{start, begin(`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`), input(`{"query":"pump"}`), end,
			begin(`{"type":"tool_use","id":"t","name":"search","input":{}}`), input(`{"q":1}`), end, toolUse, stop}, []string{`UPDATE web_search {"query":"pump"}`, `CALL search {"q":1}`}, ""},
		// The vendor's SDKs keep content_block.input unless a delta replaces it.
		{"an input in the start", []string{start, begin(`{"type":"tool_use","id":"t","name":"search","input":{"query":"x"}}`), end, toolUse, stop}, []string{`CALL search {"query":"x"}`}, ""},
		{"an input in the start and in deltas", []string{start, begin(`{"type":"tool_use","id":"t","name":"search","input":{}}`), input(`{"query"`), input(`:"x"}`), end, toolUse, stop}, []string{`CALL search {"query":"x"}`}, ""},
		{"blocks that do not end", []string{start, begin(`{"type":"tool_use","id":"t","name":"search"}`), input(`{"a":1}`), begin(`{"type":"tool_use","id":"u","name":"read"}`), input(`{"b":2}`), toolUse, stop},
			[]string{`CALL search {"a":1}`, `CALL read {"b":2}`}, ""},

		{"a second end without its reason", []string{start, block, pump, rest, end, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`, `{"type":"message_delta","delta":{},"usage":{"output_tokens":9}}`, stop},
			[]string{"WARNING The answer ends here because it reached the model's length limit.", "ANSWER The pump hums.\n\n(The answer ends here because it reached the model's length limit.)"}, ""},
		{"no message_stop", []string{start, block, pump, rest, end, delta}, []string{"ANSWER " + hums}, ""},
		{"an error behind the end", []string{start, block, pump, rest, end, delta, `{"type":"error","error":{"message":"late"}}`, stop}, []string{"ANSWER " + hums}, ""},
		{"a blank event", []string{start, " ", block, pump, rest, end, delta, stop}, []string{"ANSWER " + hums}, ""},
		{"no end", []string{start, block, pump, rest, end}, nil, "the stream ended without message_stop"},
	} {
		address := agenttest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { agenttest.Stream(w, events(c.in...)) })
		asked := agenttest.Hello()
		asked.Tools = []runinput.Tool{{Name: "read", Parameters: json.RawMessage(`{}`)}, {Name: "search", Parameters: json.RawMessage(`{}`)}}
		var called []string
		asked.Called = func(_ string, calls []runinput.Call, _ json.RawMessage) {
			for _, c := range calls {
				called = append(called, "CALL "+c.Name+" "+c.Arguments)
			}
		}
		emitted, err := agenttest.Run(t.Context(), newAgent(address, remote.DefaultConfig(), http.DefaultTransport), asked)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v", c.server, err)
			}
			continue
		}
		var got []string
		for _, m := range emitted {
			switch m.Type {
			case stream.StreamingChunk:
			case stream.Update:
				var details struct{ Arguments string }
				if err := json.Unmarshal(m.Details, &details); err != nil {
					t.Error(err)
				}
				if m.Text == "web_search" {
					got = append(got, "UPDATE "+m.Text+" "+details.Arguments)
				}
			default:
				got = append(got, m.Type.String()+" "+m.Text)
			}
		}
		if diff := cmp.Diff(c.want, append(got, called...)); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", c.server, err, diff)
		}
	}
}

// TestThoughtsGoBackWithTheirCall checks that the request behind a call has the thoughts before it, in their places and
// with their signatures.
// https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks
func TestThoughtsGoBackWithTheirCall(t *testing.T) {
	type object = map[string]any
	const (
		thinking = `{"type":"content_block_start","content_block":{"type":"thinking","thinking":"","signature":""}}`
		hm       = `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"Hm."}}`
		signed   = `{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"c2ln"}}`
		hidden   = `{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"ZW5j"}}`
		says     = `{"type":"content_block_start","content_block":{"type":"text","text":"Let me look."}}`
		looks    = `{"type":"content_block_start","content_block":{"type":"tool_use","id":"t","name":"look","input":{"at":1}}}`
		called   = `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`
	)
	thought, redacted := object{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, object{"type": "redacted_thinking", "data": "ZW5j"}
	text, use := object{"type": "text", "text": "Let me look."}, object{"type": "tool_use", "id": "step00000", "name": "look", "input": object{"at": 1.0}}
	for name, c := range map[string]struct {
		in   []string
		want []any
	}{
		"a thought":        {[]string{start, thinking, hm, signed, end, says, end, looks, end, called, stop}, []any{thought, text, use}},
		"a hidden thought": {[]string{start, hidden, end, says, end, looks, end, called, stop}, []any{redacted, text, use}},
		"between them":     {[]string{start, says, end, thinking, hm, signed, end, hidden, end, looks, end, called, stop}, []any{text, thought, redacted, use}},
		"none":             {[]string{start, says, end, looks, end, called, stop}, []any{text, use}},
		"DeepSeek, a whole message": {[]string{start, thinking, hm, signed, end, says, end, looks, end,
			`{"type":"message","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"text","text":"Let me look."},{"type":"tool_use","id":"t","name":"look","input":{"at":1}}],"stop_reason":"tool_use"}`, stop}, []any{thought, text, use}},
	} {
		bodies := agenttest.Loops(t, func(address string) turn.Agent {
			return newAgent(address, remote.DefaultConfig(), http.DefaultTransport)
		}, events(c.in...),
			events(start, `{"type":"content_block_start","content_block":{"type":"text","text":"hi"}}`, end, stop))
		if diff := cmp.Diff(any(object{"role": "assistant", "content": c.want}), bodies[1]["messages"].([]any)[1]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
