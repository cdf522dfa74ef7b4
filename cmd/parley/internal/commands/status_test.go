package commands

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
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
	if err := json.Unmarshal([]byte(got.stdout), &st); err != nil || got.status != 4 || st.Ready || len(st.Workspaces) != 1 || st.Workspaces[0].State != "stopped" || len(st.Needs) != 7 {
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

// TestStatusReady: a refused workspace is a fault of the daemon for its operator, and none for the health check of a
// container.
func TestStatusReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\n")
	write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: discord\nagent: echo\ndiscord: {token: \"canary.7f3a9c51d2e84b60a1c35e97.x\", api_url: \"http://127.0.0.1:1/\"}\n")
	if got := parley(t, dir, "status", "-q", "--ready"); got.status != 4 {
		t.Errorf("without a daemon: %+v", got)
	}
	p := start(t, dir, os.Args[0], "run")
	p.await("parley is ready")
	for deadline := time.Now().Add(time.Minute); ; {
		if got := parley(t, dir, "status", "-q"); got.status == 3 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("%+v", got)
		}
	}
	if got := parley(t, dir, "status", "-q", "--ready"); got.status != 0 || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	p.signal(os.Interrupt)
	p.end()
}
