package webhook

import (
	"testing"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/ingest/stream"
)

// FuzzPieces fuzzes the events of an answer that comes piece by piece.
func FuzzPieces(f *testing.F) {
	agenttest.Fuzz(f, func(answer *remote.Answer, _ func(stream.Message) error) (func(remote.Event) error, func() error) {
		p := &pieces{client: remote.New(remote.DefaultConfig(), "", nil), answer: answer}
		return p.take, func() error { return answer.Finish("", nil) }
	}, []string{`{"content":"\ud83d"}`, `{"content":"\ude42"}`, `[DONE]`}, []string{`{"error":{"message":"no model","code":400}}`}, []string{`{"content":null}`, `{"error":"no"}`})
}
