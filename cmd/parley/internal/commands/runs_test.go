package commands

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestRunsCommand lists the runs and the questions of a store without any, and asks about an unknown run.
func TestRunsCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	p := start(t, dir, os.Args[0], "run")
	p.await("parley is ready")
	if got := parley(t, dir, "runs", "--failed", "--since", "1h"); got.status != 0 || !strings.HasPrefix(got.stdout, "RUN") {
		t.Errorf("%+v", got)
	}
	const id = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"
	for _, what := range []string{"show", "retry", "stop"} {
		if got := parley(t, dir, "runs", what, id); got.status != 1 || got.stdout != "" {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if got := parley(t, dir, "questions"); got.status != 0 || !strings.HasPrefix(got.stdout, "RUN") {
		t.Errorf("%+v", got)
	}
	if got := parley(t, dir, "questions", "answer", id, "1"); got.status != 1 || !strings.Contains(got.stderr, "there is no open question of the run "+id+": see parley questions") {
		t.Errorf("%+v", got)
	}
	if got := parley(t, dir, "questions", "answer", id); got.status != 2 || !strings.Contains(got.stderr, "--text") {
		t.Errorf("%+v", got)
	}
	p.signal(os.Interrupt)
	p.end()
	if got := parley(t, dir, "runs", "--json"); got.status != 0 || got.stdout != "" && !json.Valid([]byte(got.stdout)) {
		t.Errorf("%+v", got)
	}
}
