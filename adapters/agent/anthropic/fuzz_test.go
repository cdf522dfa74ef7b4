package anthropic

import (
	"encoding/json"
	"testing"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/ingest/stream"
)

// FuzzEvents fuzzes the events of an answer.
func FuzzEvents(f *testing.F) {
	agenttest.Fuzz(f, func(answer *remote.Answer, _ func(stream.Message) error) (func(remote.Event) error, func() error) {
		m := &message{client: remote.New(remote.DefaultConfig(), "", nil), answer: answer, usage: map[string]json.RawMessage{}}
		return m.take, m.end
	}, []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":3}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"ping"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude42"}}`,
		`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`,
	}, []string{
		`{"type":"content_block_start","content_block":{"type":"thinking"}}`, `{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"Hm."}}`, `{"type":"content_block_stop"}`,
		`{"type":"content_block_start","content_block":{"type":"tool_use","id":"c","name":"find"}}`, `{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{}"}}`,
		`{"type":"content_block_stop"}`, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
	})
}
