package commands

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/cmd/parley/internal/doctor"
	"parley/cmd/parley/internal/traces/tracestest"
)

// TestTraces checks that the commands name the trace of a message, that doctor asks the collector, and that each span has a line on
// the page .github/TRACES.md.
func TestTraces(t *testing.T) {
	t.Parallel()
	c := tracestest.New(t)
	dir := t.TempDir()
	serveOperators(t, dir)
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nagents: [{id: echo, kind: echo}]\ntracing: {otlp: '"+c.URL+"', headers: {x-key: canary-key}, link: 'https://jaeger.example.com/trace/{trace}'}\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nturns: {coalesce: 0s}\nweb: {tokens: [{id: ci, token: "+webToken+", name: CI}]}\n")
	daemon := start(t, dir, os.Args[0], "run")
	address := daemon.address()
	status, raw := httpCall(t, http.MethodPost, address+"/api/v1/workspaces/ours/messages", webToken, `{"content":"one"}`, "")
	var said struct{ Message struct{ ID string } }
	if err := json.Unmarshal([]byte(raw), &said); err != nil || status != http.StatusAccepted {
		t.Fatalf("%d %s %v", status, raw, err)
	}
	spans := c.Await(t, func(spans []tracestest.Span) bool {
		for _, s := range spans {
			if s.Name == "turn echo" {
				return true
			}
		}
		return false
	})
	id := strings.ReplaceAll(said.Message.ID, "-", "")
	link := "https://jaeger.example.com/trace/" + id
	run := ""
	page, err := os.ReadFile(filepath.Join(repository, ".github/TRACES.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range spans {
		if s.Trace != id {
			t.Errorf("%+v is not in the trace of its message", s)
		}
		first, _, _ := strings.Cut(s.Name, " ")
		if !strings.Contains(string(page), first) {
			t.Errorf("the page does not have the span %s", s.Name)
		}
		if s.Name == "turn echo" {
			run = s.About["parley.run"]
		}
	}
	if got := parley(t, dir, "why", said.Message.ID); got.status != 0 || !strings.Contains(got.stdout, "  Trace: "+link+"\n") {
		t.Errorf("%+v", got)
	}
	var shown struct {
		ID   string `json:"trace_id"`
		Link string `json:"trace_link"`
	}
	if got := parley(t, dir, "runs", "show", "--json", run); json.Unmarshal([]byte(got.stdout), &shown) != nil || shown.ID != id || shown.Link != link {
		t.Errorf("%+v", got)
	}
	if got := parley(t, dir, "runs", "show", run); !strings.Contains(got.stdout, link) {
		t.Errorf("%+v", got)
	}
	if got := examine(t, dir, 0)["traces"]; got.State != doctor.OK {
		t.Errorf("%+v", got)
	}
	c.SetAway(true)
	if got := examine(t, dir, 0)["traces"]; got.State != doctor.Warning || got.Key != "tracing.otlp" || got.Line != 3 {
		t.Errorf("%+v", got)
	}
	c.SetAway(false)
	daemon.signal(os.Interrupt)
	daemon.end()
	if got := parley(t, dir, "why", said.Message.ID); !strings.Contains(got.stdout, link) {
		t.Errorf("without a daemon: %+v", got)
	}
}

// TestTracesOfAFaultyEnvironment checks that a variable that no exporter can read is named, and that nothing prints its value.
func TestTracesOfAFaultyEnvironment(t *testing.T) {
	c, dir := tracestest.New(t), t.TempDir()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization: Bearer canary-key")
	write(t, dir, "parley.yaml", "listen: "+freeAddress(t)+"\nagents: [{id: echo, kind: echo}]\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: ci, token: "+webToken+", name: CI}]}\n")
	got := parley(t, dir, "doctor")
	if all := got.stdout + got.stderr; strings.Contains(all, "canary") || !strings.Contains(all, "OTEL_EXPORTER_OTLP_HEADERS") || !strings.Contains(all, "the collector takes spans") {
		t.Errorf("%+v", got)
	}
}

// TestKilledDuringATrace kills the daemon while an agent works. The next one goes on in the same trace, below the span of the message,
// which the killed one had exported.
func TestKilledDuringATrace(t *testing.T) {
	t.Parallel()
	c, m, dir := tracestest.New(t), startModel(t), t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: ''}\nagents: [{id: m, kind: openai, model: m, base_url: '"+m.URL+"/v1'}]\ntracing: {otlp: '"+c.URL+"'}\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: m\nturns: {coalesce: 0s}\nweb: {tokens: [{id: ci, token: "+webToken+", name: CI}]}\n")
	daemon := start(t, dir, os.Args[0], "run")
	if status, raw := httpCall(t, http.MethodPost, daemon.address()+"/api/v1/workspaces/ours/messages", webToken, `{"content":"one"}`, ""); status != http.StatusAccepted {
		t.Fatal(status, raw)
	}
	named := func(name string) tracestest.Span {
		t.Helper()
		var found tracestest.Span
		c.Await(t, func(spans []tracestest.Span) bool {
			at := slices.IndexFunc(spans, func(s tracestest.Span) bool { return s.Name == name })
			if at >= 0 {
				found = spans[at]
			}
			return at >= 0
		})
		return found
	}
	<-m.begun
	message := named("message web")
	if err := daemon.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = daemon.cmd.Wait() // killed by the test
	daemon = start(t, dir, os.Args[0], "run")
	daemon.address()
	<-m.begun
	m.rest <- "upon a time."
	turn, attempt := named("turn m"), named("chat m")
	if turn.Trace != message.Trace || turn.Parent != message.ID || attempt.Trace != message.Trace || attempt.Parent != turn.ID {
		t.Errorf("message %+v\nturn %+v\nattempt %+v", message, turn, attempt)
	}
	daemon.signal(os.Interrupt)
	daemon.end()
}
