package runapi

import (
	"context"
	"errors"
	"testing"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/ingest/stream"
)

// FuzzMessages fuzzes the messages of a run's stream.
func FuzzMessages(f *testing.F) {
	agenttest.Fuzz(f, func(_ *remote.Answer, emit func(stream.Message) error) (func(remote.Event) error, func() error) {
		r := newFollower(New(Config{Config: remote.DefaultConfig()}, nil, nil), agenttest.Hello(), func(m stream.Message) error {
			if m.Type != stream.StreamingChunk { // the turn bounds the text
				return emit(m)
			}
			return nil
		})
		return func(e remote.Event) error { return r.read(context.Background(), e) }, func() error {
			if !r.ended {
				return errors.New("the stream ended")
			}
			return r.failure
		}
	}, []string{`{"t":1,"m":"Hm.","ts":1000}`, `{"t":12,"m":"hi","i":"a"}`, `{"t":4,"m":"child","w":"w1","ts":1500}`, `{"t":7,"m":"hi there","i":"a","ts":2000}`, `{"t":4,"ts":2000}`},
		[]string{`{"type":"answer","message":"x","timestamp":5}`, `"{\"t\":10}"`}, []string{`{"t":9,"m":"Which?","d":{"options":[]}}`}, []string{`{"t":11,"ts":"2023-11-14T22:13:20Z"}`}, []string{`{"t":10}`})
}
