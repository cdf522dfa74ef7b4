package a2a

import (
	"context"
	"errors"
	"testing"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/ingest/stream"
)

// FuzzEvents fuzzes the events of a task.
func FuzzEvents(f *testing.F) {
	result := func(results ...string) (events []string) {
		for _, r := range results {
			events = append(events, `{"jsonrpc":"2.0","result":`+r+`}`)
		}
		return events
	}
	agenttest.Fuzz(f, func(answer *remote.Answer, _ func(stream.Message) error) (func(remote.Event) error, func() error) {
		a := New(Config{Config: remote.DefaultConfig()}, nil, nil)
		a.config.MaxBytes = 1 << 10
		r := newRun(a, agenttest.Hello(), nil)
		r.answer = answer
		return r.take, func() error {
			if !r.ended {
				return errors.New("the stream ended")
			}
			return r.finish(context.Background())
		}
	},
		result(`{"kind":"task","id":"t","contextId":"c","status":{"state":"working","message":{"parts":[{"kind":"text","text":"Hm."}]}}}`,
			`{"kind":"artifact-update","taskId":"t","artifact":{"artifactId":"a","parts":[{"kind":"text","text":"Hi"},{"kind":"data","data":{"a":[1]}}]}}`,
			`{"kind":"artifact-update","taskId":"t","append":true,"artifact":{"artifactId":"a","parts":[{"kind":"file","file":{"name":"f","bytes":"aGk="}}]}}`,
			`{"kind":"status-update","taskId":"t","final":true,"status":{"state":"completed"}}`),
		result(`{"kind":"message","parts":[{"kind":"text","text":"Hi"}]}`), result(`{"id":"t","status":{"state":"input-required","message":{"parts":[{"text":"Which?"}]}}}`),
		result(`{"kind":"task","id":"t","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"file":{"uri":"https://example.org/a b"}}]},{"artifactId":"a"}]}`),
		result(`{"kind":"artifact-update","taskId":"t","artifact":{"artifactId":"a","parts":[{"text":"x"}]}}`, `{"kind":"artifact-update","taskId":"t","artifact":{"artifactId":"b","parts":[{"text":"y"}]}}`,
			`{"kind":"artifact-update","taskId":"t","append":true,"artifact":{"artifactId":"a","parts":[{"text":"z"}]}}`, `{"kind":"status-update","taskId":"t","status":{"state":"failed"}}`),
		[]string{`{"error":{"code":-32603,"message":"no","data":{}}}`},
	)
}
