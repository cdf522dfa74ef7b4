package commands

import (
	"os"
	"strings"
	"testing"
)

// TestWordsThatNameNothing asks a daemon for a thread and a run that it does not have.
func TestWordsThatNameNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	const thread = "web:ours:0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	write(t, dir, "old.jsonl", `{"id":"1","workspace":"ours","thread_id":"`+thread+`","role":"user","content":"hi","metadata":{"source":"web","sender_id":"web:a","sender_display_name":"A","sender_type":"human"},"created_at":"2026-01-02T03:04:05Z"}`+"\n")
	if got := parley(t, dir, "import", "old.jsonl"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	p := start(t, dir, os.Args[0], "run")
	p.await("parley is ready")
	for line, want := range map[string]string{
		"tail --once --thread none":              "there is no thread none",
		"threads show --input " + thread + " r9": "there is no run r9 of the thread " + thread,
	} {
		if got := parley(t, dir, strings.Fields(line)...); got.status != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	p.signal(os.Interrupt)
	p.end()
}
