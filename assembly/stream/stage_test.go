package stream_test

import (
	"encoding/json"
	"testing"

	"parley/assembly/stream"
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
