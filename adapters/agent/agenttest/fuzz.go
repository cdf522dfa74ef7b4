package agenttest

import (
	"strings"
	"testing"

	"parley/adapters/agent/remote"
	"parley/ingest/stream"
)

// Fuzz fuzzes the decoder of a kind's events. It calls the decoder itself and neither HTTP nor
// goroutines, because the fuzzer needs executions that repeat exactly. Run it with
// -fuzzminimizetime 1x: by default, the fuzzer minimizes each new input for a minute, and counts
// no execution meanwhile.
//
// Begin returns the decoder of one run: take reads an event, and end ends the run after the
// end mark. The decoder must not panic, and must not emit more text than limit allows. A run
// whose end succeeds has emitted an answer, a question, or an end that makes the streamed text its answer.
func Fuzz(f *testing.F, begin func(answer *remote.Answer, emit func(stream.Message) error) (take func(remote.Event) error, end func() error), seeds ...[]string) {
	const limit = 1 << 10
	for _, events := range seeds {
		f.Add(strings.Join(events, "\n"))
	}
	f.Fuzz(func(t *testing.T, events string) {
		bytes, ends := 0, 0
		emit := func(m stream.Message) error {
			if m.Type == stream.Answer || m.Type == stream.RequestInput || m.Type == stream.Complete || m.Type == stream.Idle {
				ends++
			}
			if m.Type == stream.StreamingChunk {
				bytes += len(m.Text)
			}
			return nil
		}
		answer := remote.NewAnswer("run-1", limit, emit).Read(remote.DefaultReading(), remote.New(remote.DefaultConfig(), "", nil), Hello().Speakers)
		take, end := begin(answer, emit)
		for event := range strings.SplitSeq(events, "\n") {
			if take(remote.Event{Data: []byte(event)}) != nil {
				return
			}
		}
		if err := end(); err == nil && ends == 0 {
			t.Error("the run ended without an answer, a question, an end and an error")
		}
		if bytes > limit {
			t.Errorf("the run emitted %d bytes of text", bytes)
		}
	})
}
