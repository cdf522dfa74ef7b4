package webhook

import (
	"encoding/json"
	"testing"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/assembly/stream"
)

// FuzzPieces fuzzes the events of an answer that comes piece by piece.
func FuzzPieces(f *testing.F) {
	agenttest.Fuzz(f, func(answer *remote.Answer, _ func(stream.Message) error) (func(remote.Event) error, func() error) {
		p := &pieces{client: remote.New(remote.DefaultConfig(), nil), answer: answer}
		return p.take, func() error { return answer.Finish("", nil) }
	}, []string{`{"content":"\ud83d"}`, `{"content":"\ude42"}`, `[DONE]`}, []string{`{"error":{"message":"no model","code":400}}`}, []string{`{"content":null}`, `{"error":"no"}`})
}

// FuzzAnswer fuzzes the JSON of an answer in one piece. Its other keys are a JSON object.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{`{"content":"hi"}`, `{"content":"","mood":{"n":null},"n":1.50}`, `{"content":null}`, `["content"]`} {
		f.Add([]byte(body))
	}
	agent := New(Config{Config: remote.DefaultConfig()}, nil, nil, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		_, details, err := agent.decode(body)
		var own map[string]json.RawMessage
		if err == nil && details != nil && (json.Unmarshal(details, &own) != nil || len(own) == 0) {
			t.Errorf("the other keys are %s", details)
		}
	})
}
