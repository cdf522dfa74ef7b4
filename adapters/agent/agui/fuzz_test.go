package agui

import (
	"context"
	"encoding/json"
	"testing"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/ingest/stream"
)

// FuzzEvents fuzzes the events of a run.
func FuzzEvents(f *testing.F) {
	agenttest.Fuzz(f, func(answer *remote.Answer, _ func(stream.Message) error) (func(remote.Event) error, func() error) {
		r := newRun(remote.New(remote.DefaultConfig(), "", nil), answer, 1<<10, agenttest.Hello())
		return func(e remote.Event) error { return r.take(context.Background(), e) }, r.end
	}, []string{
		`{"type":"RUN_STARTED"}`, `{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}`, `{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ud83d"}`,
		`{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ude42"}`, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`, `{"type":"RUN_FINISHED"}`,
	}, []string{
		`{"type":"RUN_STARTED"}`, `{"type":"THINKING_TEXT_MESSAGE_START"}`, `{"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"Hm."}`, `{"type":"THINKING_TEXT_MESSAGE_END"}`,
		`{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"n","delta":"{}"}`, `{"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"c","content":[]}`,
		`{"type":"STATE_SNAPSHOT","snapshot":{"a":[1,null]}}`, `{"type":"STATE_DELTA","delta":[{"op":"move","from":"/a/0","path":"/b"}]}`,
		`{"type":"RUN_FINISHED","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"confirmation","message":"?"}]}}`,
	}, []string{
		`{"type":"RUN_STARTED"}`, `{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}`, `{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","subagentRunId":"s","delta":"x"}`,
		`{"type":"TEXT_MESSAGE_CHUNK","messageId":"n","delta":"y"}`, `{"type":"SUBAGENT_FINISHED","subagentRunId":"s"}`,
		`{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m2","role":"assistant","content":"Bye"}]}`, `{"type":"STEP_STARTED","stepName":"s"}`, `{"type":"STEP_FINISHED","stepName":"s"}`,
		`{"type":"RUN_ERROR","message":"no","code":"E"}`,
	})
}

// FuzzPatch fuzzes JSON Patches. A document never becomes larger than its limit by far.
func FuzzPatch(f *testing.F) {
	f.Add(`{"a":[1,{"b":null}]}`, `[{"op":"add","path":"/a/-","value":2},{"op":"copy","from":"","path":"/c"},{"op":"test","path":"/a/0","value":1.0}]`)
	f.Add(`{"a":[1,{"b":null}]}`, `[{"op":"move","from":"/a/1/b","path":"/a/0"},{"op":"replace","path":"","value":[]},{"op":"remove","path":"/~0~1"}]`)
	f.Fuzz(func(t *testing.T, text, patch string) {
		const limit = 1 << 10
		work := maxWork
		d, err := newDocument([]byte(text), limit, &work)
		if err != nil || d.patch(t.Context(), []byte(patch)) != nil {
			return
		}
		raw, err := json.Marshal(d.value)
		if err != nil || len(raw) > 20*limit {
			t.Errorf("%d bytes, %v", len(raw), err)
		}
	})
}
