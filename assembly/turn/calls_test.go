package turn_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"parley/assembly/turn"
	"parley/ingest/stream"
	"parley/ingest/trace"
)

// TestToolsOfAnAttempt checks the calls that the report of an attempt has if its run has a place in a trace: those of Parley, each made at a
// place of its own, and those that the agent tells of. Without a place, it has none.
func TestToolsOfAnAttempt(t *testing.T) {
	tells := func(_ context.Context, emit func(stream.Message) error) error {
		for _, happened := range []string{"started", "completed"} {
			details, _ := json.Marshal(map[string]string{"tool": "search", "tool_event": happened, "tool_use_id": "s1"})
			if err := emit(stream.Message{Type: stream.Update, Text: "search", Details: details}); err != nil {
				return err
			}
			<-time.After(2 * time.Second)
		}
		return emit(stream.Message{Type: stream.Answer, Text: "ok"})
	}
	for _, at := range []trace.Place{{}, {Trace: [16]byte{1}, Span: [8]byte{2}}} {
		tools := &toolbox{}
		inBubble(t, calling(tools, []string{"a", "b"}, []string{"c"}), func(d *fixture) {
			d.at, d.agent.does = at, []script{tells}
			d.asks("1", "one")
			pass(10 * time.Second)
			same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
			var got []string
			for _, tool := range d.reports[0].Tools {
				got = append(got, tool.Name+" "+tool.ID+" "+tool.Arguments+" "+tool.EndedAt.Sub(tool.BegunAt).String())
			}
			if at.IsZero() {
				same(t, "tools", got, nil)
				same(t, "places", tools.places, []trace.Place{{}, {}, {}})
				return
			}
			same(t, "tools", got, []string{"look c0 a 0s", "look c1 b 0s", "look c0 c 0s", "search s1  2s"})
			same(t, "places", tools.places, []trace.Place{turn.ToolPlace(at, 0), turn.ToolPlace(at, 1), turn.ToolPlace(at, 2)})
		})
	}
}
