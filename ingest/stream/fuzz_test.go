package stream_test

import (
	"encoding/json"
	"testing"

	"parley/ingest/stream"
)

// FuzzAnswer fuzzes the JSON of an answer. Its other keys are a JSON object.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{`{"content":"hi"}`, `{"content":"","mood":{"n":null},"n":1.50}`, `{"content":null}`, `["content"]`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := stream.ParseAnswer(body)
		var own map[string]json.RawMessage
		if err == nil && m.Details != nil && (json.Unmarshal(m.Details, &own) != nil || len(own) == 0) {
			t.Errorf("the other keys are %s", m.Details)
		}
	})
}
