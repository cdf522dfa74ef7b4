package commands

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestWhyCommand asks for an unknown message, with a daemon and without one.
func TestWhyCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	if got := parley(t, dir, "why"); got.status != 2 {
		t.Errorf("without a reference: %+v", got)
	}
	p := start(t, dir, os.Args[0], "run")
	p.await("parley is ready")
	const id = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	got := parley(t, dir, "why", "--json", id)
	var w struct {
		Ref      string
		Found    bool
		Possible []struct{ Reason string }
	}
	if err := json.Unmarshal([]byte(got.stdout), &w); err != nil || got.status != 1 || w.Ref != id || w.Found || len(w.Possible) == 0 {
		t.Errorf("%v %+v", err, got)
	}
	p.signal(os.Interrupt)
	p.end()
	if got := parley(t, dir, "why", id); got.status != 1 || !strings.Contains(got.stdout, "The store has no message "+id+".") || !strings.Contains(got.stderr, "daemon stopped") {
		t.Errorf("%+v", got)
	}
}
