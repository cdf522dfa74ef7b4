package commands

import (
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/listing"
	"parley/ingest/stream"
)

// TestRunText prints a run with its workstreams.
func TestRunText(t *testing.T) {
	t.Parallel()
	at := time.Date(2020, 11, 27, 9, 39, 16, 0, time.UTC)
	var out strings.Builder
	if err := printRun(display{Writer: &out}, operator.Run{ChannelName: "garden", Run: listing.Run{Channel: "C1", ID: "r1", Thread: "slack:acme:C1", Agent: "lead", State: "running", BegunAt: at, Workstreams: []listing.Workstream{
		{ID: "w1", Agent: "coder", State: "running", Phase: "executing_tool", Tool: "read\x1bfile"}, {ID: "w2", Agent: "coder", State: "failed", EndedAt: at, Error: "no\nmodel"},
	}, Attempts: []listing.Attempt{{N: 1, BegunAt: at, EndedAt: at.Add(1700 * time.Millisecond), TokensIn: 1200, TokensOut: 1}}}}, at.Add(48*time.Hour)); err != nil {
		t.Fatal(err)
	}
	const want = `run         r1
state       running
channel     #garden
thread      slack:acme:C1
agent       lead
begun       2020-11-27 09:39:16 +00:00
attempt 1   2020-11-27 09:39:16 +00:00, 1.7 s, 1,200 tokens in and 1 token out, answered
workstream  w1 of agent coder: running, executing read\u001bfile
workstream  w2 of agent coder: failed: no model
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestQuestionText prints who asks for what, and where.
func TestQuestionText(t *testing.T) {
	t.Parallel()
	at := time.Date(2020, 11, 27, 9, 39, 16, 0, time.UTC)
	var out strings.Builder
	if err := printQuestion(display{Writer: &out}, operator.Question{
		Run: "r1", Agent: "gardener", Workspace: "acme", Channel: "C1", ChannelName: "garden", Asker: "Nora", AskerID: "slack:U1", Request: "open the\nother valve",
		Text: "May I open it?", Options: []stream.Option{{ID: "approve", Label: "Approve"}}, Details: []byte(`{"tool":"valve"}`), AskedAt: at, UntilAt: at.Add(time.Hour),
	}, at); err != nil {
		t.Fatal(err)
	}
	const want = `run       r1
person    Nora (slack:U1)
channel   #garden in acme
request   open the other valve
agent     gardener
question  May I open it?
options   1 Approve
details   {"tool":"valve"}
asked     09:39:16 +00:00
until     10:39:16 +00:00
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestACellHasNoCommandsOfATerminal prints what a stranger chose as a cell: one line, without a character that moves the cursor or the text.
func TestACellHasNoCommandsOfATerminal(t *testing.T) {
	for given, want := range map[string]string{
		"two\r\nlines\tand a tab": "two lines and a tab", "red\u009b31m \u0084\u0090\u009c\u009d": `red\u009b31m \u0084\u0090\u009c\u009d`, "\x1b[2J\a": `\u001b[2J\u0007`, "\u202egnp.exe": `\u202egnp.exe`,
	} {
		if got := oneLine(given); got != want {
			t.Errorf("%q: %q", given, got)
		}
	}
}
