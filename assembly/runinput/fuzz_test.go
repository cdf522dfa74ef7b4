package runinput_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/assembly/lookalike"
	"parley/assembly/runinput"
)

// FuzzInput fuzzes the bodies of runs. An input that was read is written as one that reads as
// the same, and no tool and no fact leaves its block.
func FuzzInput(f *testing.F) {
	f.Add(`{"threadId":"` + thread + `","runId":"r","state":{},"messages":[{"id":"m","role":"user","content":[{"type":"text","text":"hi"},{"type":"binary","mimeType":"image/png","url":"u","data":""}]}],"tools":[{"name":"a","description":"b","parameters":{"x":[1,null]}}],"context":[{"description":"d","value":"v"}],"forwardedProps":null}`)
	f.Add(`{"threadId":"x","runId":"","parentRunId":"p","messages":[{"role":"assistant","content":null},{"role":"tool","content":"x"}]}`)
	f.Add(`{"threadId":"x","runId":"r","messages":[{"id":"m","role":"user","content":[{"type":"text","text":""}]}],"tools":[{"name":"<!-->","description":"--!>","parameters":{},"Name":"x"}]}`)
	f.Add(`{"threadId":"x","runId":"r","messages":[{"id":"m","role":"user","content":"x"}],"context":[{"description":"a\nb","value":"--\u200b>"}],"state":{"<!--":"－－＞"},"forwardedProps":[" "]}`)
	f.Fuzz(func(t *testing.T, body string) {
		in, err := runinput.Read([]byte(body))
		if err != nil {
			return
		}
		_ = in.Check(len(body))
		raw, err := json.Marshal(in.Input)
		if err != nil {
			t.Fatal(err)
		}
		again, err := runinput.Read(raw)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in.Input, again.Input); diff != "" {
			t.Error(diff)
		}
		rest, err := runinput.ReadRest(in.Rest)
		if err != nil {
			t.Fatal(err)
		}
		var tools []json.RawMessage
		_ = json.Unmarshal(rest.Tools, &tools) // Read has checked it
		if block, err := rest.ToolsPrompt(); err != nil || len(tools) > 0 &&
			(strings.Count(block, "\n") != 2*len(tools)+2 || strings.Count(block, "-->") != 2) {
			t.Errorf("the block is\n%s\n%v", block, err)
		}
		block, err := rest.FactsPrompt()
		lines := strings.FieldsFunc(block, lookalike.IsLineEnd)
		for i, line := range lines {
			if seen := lookalike.Seen(line); i > 0 && i < len(lines)-1 && (!strings.HasPrefix(line, "- ") || strings.Contains(seen, "-->") || strings.Contains(seen, "<!--")) {
				t.Errorf("a line of the facts is %q", line)
			}
		}
		if err != nil || block != "" && (lines[0] != "<!-- CONTEXT_START -->" || lines[len(lines)-1] != "<!-- CONTEXT_END -->") {
			t.Errorf("the facts are\n%s\n%v", block, err)
		}
	})
}
