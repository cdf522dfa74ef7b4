package commands

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"parley/adapters/agent/acp/acptest"
)

// TestKillsDuringPrompts kills the daemon while the program of an acp agent works. The program ends with the daemon. After the start, it goes on with its
// session, and is asked once more only if it had not used a tool.
func TestKillsDuringPrompts(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a program with its parent")
	}
	for _, can := range []string{"load", "resume"} {
		t.Run(can, func(t *testing.T) {
			t.Parallel()
			dir, work, thread := t.TempDir(), t.TempDir(), uuid.NewString()
			write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\nagents: [{id: coder, kind: acp, command: [\""+os.Args[0]+"\"], dir: \""+work+
				"\", env: {"+acptest.Variable+": "+can+" stays}}]\n")
			var daemon *process
			address := ""
			begin := func() {
				daemon = start(t, dir, os.Args[0], "run")
				address = "http://" + daemon.address()
			}
			says := func(text string) string {
				t.Helper()
				got := parley(t, dir, "chat", "--url", address, "--thread", thread, "--quiet", "--once", text)
				return strings.TrimSpace(got.stdout)
			}
			killDuring := func(text, file string) {
				t.Helper()
				asking := start(t, dir, os.Args[0], "chat", "--url", address, "--thread", thread, "--once", text)
				pid := content(t, filepath.Join(work, file))
				if err := daemon.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = daemon.cmd.Wait() // killed by the test
				_ = asking.cmd.Process.Kill()
				_ = asking.cmd.Wait()
				for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
					state, err := os.ReadFile("/proc/" + pid + "/stat")
					if err != nil || strings.Contains(string(state), ") Z ") { // init reaps it
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("the program %s lives on after the daemon", pid)
					}
				}
				begin()
			}
			begin()
			if got := says("recall"); got != "0 before" {
				t.Errorf("at first: %q", got)
			}
			killDuring("hold one\nsay again", "one")
			if got := says("recall"); got != "3 before" { // the prompt came twice
				t.Errorf("after a kill: %q", got)
			}
			killDuring("tool c1 Edit\nread\nhold two\nsay again", "two") // the refusal of the file comes after the note of the tool
			if got := says("recall"); got != "5 before" {                // this one came once
				t.Errorf("after a kill behind a tool: %q", got)
			}
			if failed := parley(t, dir, "runs", "--failed"); !strings.Contains(failed.stdout, "interrupted after it had used a tool") {
				t.Errorf("the run of the tool has not failed: %s%s", failed.stdout, failed.stderr)
			}
			if got := says("ask c2 rm"); !strings.HasPrefix(got, "May I do this (execute)?") {
				t.Errorf("a permission: %q", got)
			}
			if err := daemon.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = daemon.cmd.Wait() // killed by the test
			begin()
			if got := says("1"); !strings.HasPrefix(got, "I no longer wait for this decision") {
				t.Errorf("a decision after a kill: %q", got)
			}
			if got := says("recall"); got != "7 before" {
				t.Errorf("at last: %q", got)
			}
			daemon.signal(os.Interrupt)
			daemon.end()
		})
	}
}

// content returns the content of a file once it is there.
func content(t *testing.T, path string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		raw, err := os.ReadFile(path)
		if err == nil {
			return string(raw)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}
