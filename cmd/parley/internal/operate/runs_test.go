package operate

import (
	"strings"
	"testing"
	"time"

	"parley/ingest/journal/listing"
)

// TestRunText prints a run with its workstreams.
func TestRunText(t *testing.T) {
	t.Parallel()
	at := time.Date(2020, 11, 27, 9, 39, 16, 0, time.Local)
	var out strings.Builder
	if err := printRun(&out, listing.Run{ID: "r1", Thread: "slack:acme:C1", Agent: "lead", State: "running", BegunAt: at, Workstreams: []listing.Workstream{
		{ID: "w1", Agent: "coder", State: "running", Phase: "executing_tool", Tool: "read\x1bfile"}, {ID: "w2", Agent: "coder", State: "failed", EndedAt: at, Error: "no\nmodel"},
	}}); err != nil {
		t.Fatal(err)
	}
	const want = `run         r1, running
thread      slack:acme:C1
agent       lead
begun       2020-11-27 09:39:16
workstream  w1 of agent coder: running, executing read file
workstream  w2 of agent coder: failed: no model
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
