package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// serveOperators writes a configuration with a web workspace.
func serveOperators(t *testing.T, dir string) {
	t.Helper()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: ci-7f3a9c51d2e84b60a1c35e97, name: c}]}\n")
}

// TestStatus asks a daemon before its first start, while it runs, and after it was killed.
func TestStatus(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveOperators(t, dir)
	if got := parley(t, dir, "status"); got.status != 4 || got.stdout != "" || !strings.Contains(got.stderr, "parley run") {
		t.Errorf("before the first start: %+v", got)
	}
	p := start(t, dir, os.Args[0], "run")
	p.await("parley is ready")
	got := parley(t, dir, "status")
	if got.status != 0 || got.stderr != "" || !strings.Contains(got.stdout, "\nours       web       up     ") {
		t.Errorf("%+v", got)
	}
	if got := parley(t, dir, "status", "-q"); got.status != 0 || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	p.signal(os.Kill)
	_ = p.cmd.Wait() // it ended by the signal
	got = parley(t, dir, "status", "--json")
	var st struct {
		Ready      bool
		Workspaces []struct{ ID, State string }
		Needs      map[string]int
	}
	if err := json.Unmarshal([]byte(got.stdout), &st); err != nil || got.status != 4 || st.Ready || len(st.Workspaces) != 1 || st.Workspaces[0].State != "stopped" || len(st.Needs) != 4 {
		t.Errorf("%v %+v", err, got)
	}
	if !strings.HasPrefix(got.stderr, "(daemon stopped)\n") {
		t.Errorf("%q", got.stderr)
	}
	p = start(t, dir, os.Args[0], "run") // the socket of the dead daemon is no obstacle
	p.await("parley is ready")
	if got := parley(t, dir, "status"); got.status != 0 {
		t.Errorf("%+v", got)
	}
	p.signal(os.Interrupt)
	p.end()
}
