package openai

import (
	"testing"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/ingest/stream"
)

// FuzzChunks fuzzes the chunks of a completion.
func FuzzChunks(f *testing.F) {
	agenttest.Fuzz(f, func(answer *remote.Answer, _ func(stream.Message) error) (func(remote.Event) error, func() error) {
		c := &completion{agent: New(DefaultConfig(), nil, nil), answer: answer}
		return c.take, c.end
	}, []string{
		`{"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}`, `{"choices":[{"index":0,"delta":{"content":"\ude42","reasoning_content":"Hm."}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":{"total_tokens":7}}`, `[DONE]`,
	}, []string{
		`{"choices":[{"delta":{"refusal":"No."}}]}`, `{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"c","function":{"name":"find","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
	}, []string{`{"error":{"message":"no model","code":400}}`})
}
