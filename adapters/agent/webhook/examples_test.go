package webhook_test

import (
	"bufio"
	"errors"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/agenttest"
	"parley/adapters/agent/remote"
	"parley/adapters/agent/webhook"
	"parley/config/secret"
	"parley/ingest/stream"
)

// TestExamples runs the example in each language. Each answers a signed request, and refuses
// one with another secret's signature and an old one.
func TestExamples(t *testing.T) {
	t.Run("python", func(t *testing.T) { example(t, "python3", "examples/agent.py") })
	t.Run("javascript", func(t *testing.T) { example(t, "node", "examples/agent.mjs") })
	t.Run("go", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "agent")
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		example(t, program)
	})
}

func example(t *testing.T, program string, args ...string) {
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not installed", program)
	}
	address := start(t, exec.CommandContext(t.Context(), program, args...))
	ask := func(key string, now time.Time) ([]stream.Message, error) {
		config := webhook.Config{URL: address, Secret: secret.New(key), Config: remote.DefaultConfig()}
		agent := webhook.New(config, nil, http.DefaultTransport, func() time.Time { return now })
		return agenttest.Run(t.Context(), agent, agenttest.Hello())
	}
	emitted, err := ask(agenttest.Canary, time.Now())
	if diff := cmp.Diff([]string{"You said: hi"}, agenttest.Texts(emitted, stream.Answer)); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for name, err := range map[string]error{
		"another secret":   second(ask("another secret of 24 bytes", time.Now())),
		"an hour ago":      second(ask(agenttest.Canary, time.Now().Add(-time.Hour))),
		"an hour from now": second(ask(agenttest.Canary, time.Now().Add(time.Hour))),
	} {
		if fault, ok := errors.AsType[*remote.Error](err); !ok || fault.Status != http.StatusUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second(_ []stream.Message, err error) error { return err }

// start starts an example on any free port and returns its address, which it prints.
func start(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	command.Env = append(command.Environ(), "PORT=0", "WEBHOOK_SECRET="+agenttest.Canary)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it was killed
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the example ended: %v", lines.Err())
	}
	return lines.Text()
}
