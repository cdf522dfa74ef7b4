package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/cmd/internal/command"
	"parley/cmd/parley-bench/internal/rig"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/postgres/postgrestest"
)

// TestMain lets the test binary run as the floor, like the tool's own binary.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "floor" {
		main()
		return
	}
	os.Exit(m.Run())
}

// buildDaemon builds the real binary. It skips the test in short mode.
func buildDaemon(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts the daemon")
	}
	parley, err := rig.Build(t.Context(), "", filepath.Join(t.TempDir(), "parley"))
	if err != nil {
		t.Fatal(err)
	}
	return parley
}

// example is one small run and a pattern of its output.
type example struct {
	args   []string
	output string
}

func (e example) run(t *testing.T, parley string, more ...string) {
	t.Helper()
	var out strings.Builder
	args := append(append(e.args, "-parley="+parley, "-dir="+journaltest.Dir(t)), more...)
	if err := dispatch(t.Context(), args, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !regexp.MustCompile(e.output).MatchString(out.String()) {
		t.Errorf("the output does not match %s:\n%s", e.output, &out)
	}
}

const (
	cleanVerdict = `[1-9]\d* messages .*0 lost, 0 doubled`
	loadFigures  = `parley +\d+ messages/s`
)

// TestScenariosWithOneDaemon runs the scenarios with the real binary for a short time.
func TestScenariosWithOneDaemon(t *testing.T) {
	parley := buildDaemon(t)
	for name, example := range map[string]example{
		"load":      {[]string{"load", "-events=60", "-threads=16", "-connections=4", "-calm=0s", "-warmup=20"}, loadFigures},
		"load old":  {[]string{"load", "-events=30", "-workload=old", "-connections=4", "-calm=0s", "-warmup=4"}, `(?s)` + loadFigures + `.*ratio .* times its CPU`},
		"load talk": {[]string{"load", "-events=60", "-workload=talk", "-connections=4", "-calm=0s", "-warmup=4", "-only=parley"}, loadFigures},
		"load stream": {[]string{"load", "-workload=stream", "-agent=all", "-events=4", "-tokens=130", "-token-rate=100", "-connections=4", "-calm=0s", "-warmup=4"},
			`(?s)openai: .*floor .* last token to end .*` + loadFigures + `.* last token to end .*ratio   parley has [\d.]+ times its CPU.*anthropic: .*agui: .*webhook: .*run-api: .*ratio `},
		"load rate": {[]string{"load", "-events=30", "-threads=16", "-connections=4", "-calm=0s", "-warmup=20", "-rate=150", "-only=parley"}, loadFigures},
		"peers": {[]string{"peers", "-events=60", "-rounds=1", "-connections=4", "-calm=0s", "-warmup=20"},
			`(?s)\d{4}-\d\d-\d\d; .*parley .*ratio   parley has .* of the floor's messages/s`},
		"kill": {[]string{"kill", "-profile=model", "-kills=2", "-events=60", "-rate=40", "-after=500ms", "-timeout=500ms", "-seed=1"}, cleanVerdict},
		"kill stream": {[]string{"kill", "-profile=stream", "-kills=2", "-events=20", "-after=500ms", "-timeout=500ms", "-seed=1"},
			`(?s)0 streams left open, 0 working reactions left.*` + cleanVerdict},
		"imessage": {[]string{"imessage", "-messages=60", "-chats=4", "-away=1s", "-old=50", "-unclear=4", "-kills=1", "-after=100ms", "-seed=1"},
			`(?s)50 week-old webhooks .* 0 replies.* questions lost, 0 out of order, 0 echoes.*` + cleanVerdict},
		"sockets": {[]string{"sockets", "-disconnects=4", "-threads=8", "-channels=2", "-every=200ms", "-seed=1"},
			`(?s)disconnects: [1-9].*` + cleanVerdict},
		"restarts": {[]string{"restarts", "-restarts=2", "-messages=12", "-threads=8", "-channels=2", "-seed=1"},
			`(?s)restart 1, SIGTERM: 12 messages .*restart 2, kill -9: .*` + cleanVerdict},
		"restarts mentions": {[]string{"restarts", "-restarts=1", "-messages=12", "-threads=8", "-channels=2", "-mentions=2", "-tiers", "-new-within=1m", "-old-within=1m", "-seed=1"},
			`(?s)answered in 2 new threads: .*answered in 2 old threads: .* ([1-9]\d*) of their [1-9].*` + cleanVerdict},
		"doors": {[]string{"doors", "-rate=20", "-lasts=500ms", "-callers=20", "-guessers=2"}, `(?s)forged .*tokens .*429.*` + cleanVerdict},
		"scale": {[]string{"scale", "-stored=200", "-pending=50"}, `(?s)200 stored, 50 pending: ready in .*` + cleanVerdict},
	} {
		t.Run(name, func(t *testing.T) { example.run(t, parley) })
	}
}

func TestScenariosWithSeveralDaemons(t *testing.T) {
	parley, server := buildDaemon(t), postgrestest.URL(t)
	for name, example := range map[string]example{
		"load": {[]string{"load", "-events=60", "-threads=16", "-connections=4", "-calm=0s", "-warmup=20"}, `(?s)` + loadFigures + `.*ratio`},
		"cluster": {[]string{"cluster", "-profile=model", "-kills=3", "-events=1200", "-rate=40", "-after=500ms", "-timeout=500ms",
			"-stops=1", "-stop=500ms", "-cuts=200ms", "-seed=1", "-gentle=0.5", "-outage=true"},
			`(?s)3 kills; .* of the kills were a SIGTERM, .*` + cleanVerdict + `.*connections terminated; 1 times .*PostgreSQL was away for`},
	} {
		t.Run(name, func(t *testing.T) { example.run(t, parley, "-postgres="+server, "-daemons=2") })
	}
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{nil, {"nonsense"}, {"load", "-nonsense"}, {"load", "extra"}, {"load", "-threads=1"},
		{"load", "-only=nobody"}, {"kill", "-profile=nobody"}, {"kill", "-threads=1"}, {"sockets", "-rate=0"}, {"scale", "-pending=-1"},
		{"load", "-daemons=2"}, {"kill", "-daemons=0"}, {"cluster"}, {"cluster", "-daemons=1", "-stops=-1"},
		{"cluster", "-daemons=1", "-gentle=1.1"}, {"cluster", "-daemons=1", "-outage=true"},
		{"sockets", "-sockets=0"}, {"sockets", "-daemons=2"}, {"restarts", "-mode=nobody"},
		{"restarts", "-messages=0"}, {"kill", "-after=x"}} {
		var wrong command.UsageError
		if err := dispatch(t.Context(), args, &strings.Builder{}); !errors.As(err, &wrong) {
			t.Errorf("%q: %v, want a UsageError", args, err)
		}
	}
}
