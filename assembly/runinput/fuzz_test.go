package runinput_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/assembly/runinput"
)

// FuzzInput fuzzes the bodies of runs. An input that was read is written as one that reads as
// the same, and no tool leaves the block of tools.
func FuzzInput(f *testing.F) {
	f.Add(`{"threadId":"` + thread + `","runId":"r","state":{},"messages":[{"id":"m","role":"user","content":[{"type":"text","text":"hi"},{"type":"binary","mimeType":"image/png","url":"u","data":""}]}],"tools":[{"name":"a","description":"b","parameters":{"x":[1,null]}}],"context":[{"description":"d","value":"v"}],"forwardedProps":null}`)
	f.Add(`{"threadId":"x","runId":"","parentRunId":"p","messages":[{"role":"assistant","content":null},{"role":"tool","content":"x"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		var in, again runinput.Input
		if json.Unmarshal([]byte(body), &in) != nil {
			return
		}
		_ = in.Check(len(body))
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
		twice, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(raw), string(twice)); diff != "" {
			t.Error(diff)
		}
		if block, err := runinput.ToolsPrompt(in.Tools); err == nil && len(in.Tools) > 0 &&
			(strings.Count(block, "\n") != 2*len(in.Tools)+2 || strings.Count(block, "-->") != 2) {
			t.Errorf("the block is\n%s", block)
		}
	})
}
