package stream_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/stream"
)

// TestStage checks the stage of each kind of message.
func TestStage(t *testing.T) {
	for raw, want := range map[string]string{
		`{"t":1,"m":"hm"}`:                     stream.StageIntent,
		`{"t":2,"d":{"plan":[]}}`:              stream.StageIntent,
		`{"t":3,"m":"half"}`:                   stream.StageExecution,
		`{"t":3,"d":{"tool":"search"}}`:        stream.StageToolExecution,
		`{"t":3,"d":{"tools":["search"]}}`:     stream.StageToolExecution,
		`{"t":1,"d":{"tool_event":"started"}}`: stream.StageToolExecution,
		`{"t":3,"d":[1]}`:                      stream.StageExecution,
		`{"t":5,"m":"careful"}`:                stream.StageExecution,
		`{"t":13}`:                             stream.StageToolExecution,
		`{"t":7,"d":{"tool":"search"}}`:        stream.StageAnswer,
		`{"t":12,"m":"a"}`:                     stream.StageAnswer,
	} {
		var m stream.Message
		if err := json.Unmarshal([]byte(raw), &m); err != nil || m.Stage() != want {
			t.Errorf("%s: %s, %v; want %s", raw, m.Stage(), err, want)
		}
	}
}

// TestFinishedOf checks the latencies of stages and of calls, of which two of one tool overlap and one has no end. The ids
// of calls tell parallel calls of one tool apart.
func TestFinishedOf(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	finished := func(texts ...string) []stream.Finished {
		var said []stream.Message
		for i, raw := range texts {
			var m stream.Message
			if err := json.Unmarshal([]byte(raw), &m); err != nil {
				t.Fatal(err)
			}
			m.Time = begun.Add(time.Duration(i+1) * time.Second)
			said = append(said, m)
		}
		return stream.FinishedOf(begun, begun.Add(10*time.Second), said)
	}
	const begins, ends = `{"t":3,"d":{"tool":"search","tool_event":"started"}}`, `{"t":3,"d":{"tool":"search","tool_event":"completed"}}`
	got := finished(`{"t":1,"m":"hm"}`, begins, begins, ends, `{"t":1,"m":"hm"}`, ends, `{"t":3,"d":{"tool":"mail","tool_event":"started"}}`, `{"t":3,"d":{"tool":"lost","tool_event":"failed","error":"no such tool"}}`)
	after := func(s int) time.Time { return begun.Add(time.Duration(s) * time.Second) }
	want := []stream.Finished{
		{Stage: stream.StageIntent, Latency: 2 * time.Second, At: after(2)}, {Stage: stream.StageToolExecution, Tool: "search", Latency: 2 * time.Second, At: after(4)},
		{Stage: stream.StageToolExecution, Tool: "search", Latency: 3 * time.Second, At: after(6)},
		{Stage: stream.StageToolExecution, Tool: "lost", At: after(8), Failed: true, Error: "no such tool"},
		{Stage: stream.StageExecution, Latency: 8 * time.Second, At: after(10)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = finished(`{"t":3,"d":{"tool":"search","tool_event":"started","tool_use_id":"c1"}}`, `{"t":3,"d":{"tool":"search","tool_event":"started","tool_use_id":"c2"}}`,
		`{"t":3,"d":{"tool":"search","tool_event":"completed","tool_use_id":"c2","uiSchema":{"version":"2.0"}}}`, `{"t":3,"m":"away","d":{"tool":"search","tool_event":"failed","tool_use_id":"c1"}}`)
	want = []stream.Finished{
		{Stage: stream.StageToolExecution, Tool: "search", ID: "c2", Latency: time.Second, At: after(3), Card: json.RawMessage(`{"version":"2.0"}`)},
		{Stage: stream.StageToolExecution, Tool: "search", ID: "c1", Latency: 3 * time.Second, At: after(4), Failed: true, Error: "away"},
		{Stage: stream.StageExecution, Latency: 9 * time.Second, At: after(10)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := finished(`{"t":7,"m":"yes"}`); len(got) > 0 {
		t.Errorf("an answer alone: %+v", got)
	}
	if got := finished(`{"t":1,"m":"hm"}`); !cmp.Equal(got, []stream.Finished{{Stage: stream.StageIntent, Latency: 10 * time.Second, At: after(10)}}) {
		t.Errorf("a thought alone: %+v", got)
	}
}
