package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/internal/doctor"
)

// TestCommandsWithFaultyFiles asks a running daemon whose files got a fault since: each command does its work by the socket, and
// warns of the fault. Without the daemon, the fault is the error.
func TestCommandsWithFaultyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const sound = "listen: 127.0.0.1:0\nstore: sqlite:elsewhere/parley.db\nconsole: {listen: 127.0.0.1:0}\n"
	write(t, dir, "parley.yaml", sound)
	p := start(t, dir, os.Args[0], "run")
	url := "http://" + p.address()
	commands := []string{
		"status", "dead", "runs", "threads", "deliveries", "questions", "schedules", "tail --once", "console --print", "backup FILE", "chat --once hello --url " + url,
	}
	for n, f := range []struct{ yaml, at string }{
		{sound + "agents:\n  - id: echo\n    knd: echo\n", "parley.yaml:6: agents[0].knd: warning: "},
		{sound + "metrics: {token: \"${NO_SUCH_VARIABLE}\"}\n", "parley.yaml:4: metrics.token: warning: needs the environment variable NO_SUCH_VARIABLE"},
		{sound + "log:\n\tlevel: info\n", "parley.yaml:5: warning: is not YAML"},
	} {
		write(t, dir, "parley.yaml", f.yaml)
		for _, line := range commands {
			got := parley(t, dir, strings.Fields(strings.ReplaceAll(line, "FILE", fmt.Sprintf("%d.tar.zst", n)))...)
			if got.status != 0 || !strings.Contains(got.stderr, f.at) {
				t.Errorf("%s: parley %s: %+v", f.at, line, got)
			}
		}
		if got := parley(t, dir, "status", "--quiet"); got.status != 0 || got.stderr != "" {
			t.Errorf("%+v", got)
		}
		if got := parley(t, dir, "reload"); got.status != 1 || !strings.Contains(got.stdout, strings.Replace(f.at, "warning: ", "", 1)) || !strings.Contains(got.stderr, "the last good configuration stays") {
			t.Errorf("%+v", got)
		}
		if got := examine(t, dir, 1); got["configuration"].State != doctor.Fault || got["daemon"].State != doctor.OK || got["connection local"].State != doctor.OK {
			t.Errorf("%+v", got)
		}
	}
	p.signal(os.Interrupt)
	p.end()
	for _, line := range append(commands, "reload") {
		if got := parley(t, dir, strings.Fields(line)...); got.status != 1 || !strings.Contains(got.stderr, "parley.yaml:5: is not YAML") {
			t.Errorf("without a daemon: parley %s: %+v", line, got)
		}
	}
}

// TestDoctorKnowsItsOwnDaemon examines a configuration whose daemon does not run, while that of another one has the address.
func TestDoctorKnowsItsOwnDaemon(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	serveOperators(t, other)
	address := start(t, other, os.Args[0], "run").address()
	write(t, dir, "parley.yaml", "listen: "+address+"\n")
	got := examine(t, dir, 1)
	if c := got["daemon"]; c.State != doctor.Fault || !strings.Contains(c.Words, "the daemon of another configuration has its address") || c.Key != "listen" || c.Line != 1 {
		t.Errorf("%+v", c)
	}
	if c, ok := got["connection ours"]; ok {
		t.Errorf("a workspace of the other daemon: %+v", c)
	}
}

// TestConfigurationOfAPackage: without --config and a file here, the configuration of the machine is read.
func TestConfigurationOfAPackage(t *testing.T) {
	dir, system := t.TempDir(), t.TempDir()
	serveOperators(t, system)
	t.Setenv("PARLEY_SYSTEM_CONFIG", filepath.Join(system, "parley.yaml"))
	p := start(t, system, os.Args[0], "run")
	p.await("parley is ready")
	if got := parley(t, dir, "status"); got.status != 0 || !strings.Contains(got.stdout, "\nours ") {
		t.Errorf("%+v", got)
	}
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\n")
	if got := parley(t, dir, "status"); got.status != 4 {
		t.Errorf("a file here is not the first: %+v", got)
	}
	p.signal(os.Interrupt)
	p.end()
	if os.Geteuid() == 0 {
		return // no mode keeps root out
	}
	empty := t.TempDir()
	if err := os.Chmod(system, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(system, 0o700) })
	if got := parley(t, empty, "status"); got.status != 1 || !strings.Contains(got.stderr, system+"/parley.yaml:1: can't be read: permission denied for the user ") {
		t.Errorf("%+v", got)
	}
}
