package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/ingest/journal/postgres/postgrestest"
)

// TestMain lets the test binary be the floor, as the tool's own binary is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "floor" {
		main()
		return
	}
	os.Exit(m.Run())
}

// buildDaemon builds the real binary, for a test that may take its time.
func buildDaemon(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts the daemon")
	}
	parley, err := binary(t.Context(), "", filepath.Join(t.TempDir(), "parley"))
	if err != nil {
		t.Fatal(err)
	}
	return parley
}

// smoke is one small run, and what it must say.
type smoke struct {
	args []string
	says string
}

func (s smoke) run(t *testing.T, parley string, more ...string) {
	t.Helper()
	var out strings.Builder
	args := append(append(s.args, "-parley="+parley, "-dir="+t.TempDir()), more...)
	if err := dispatch(t.Context(), args, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !regexp.MustCompile(s.says).MatchString(out.String()) {
		t.Errorf("it does not say %s:\n%s", s.says, &out)
	}
}

const (
	saysClean = `[1-9]\d* acknowledged .*0 lost, 0 doubled`
	saysRate  = `parley +\d+ messages/s`
)

// TestAgainstTheDaemon loads and kills the real binary, a little.
func TestAgainstTheDaemon(t *testing.T) {
	parley := buildDaemon(t)
	for name, run := range map[string]smoke{
		"load":  {[]string{"load", "-events=60", "-threads=16", "-connections=4", "-calm=0s", "-warmup=20"}, saysRate},
		"open":  {[]string{"load", "-events=30", "-threads=16", "-connections=4", "-calm=0s", "-warmup=20", "-rate=150", "-only=parley"}, saysRate},
		"model": {[]string{"kill", "-profile=model", "-kills=2", "-events=60", "-rate=40", "-after=500ms", "-timeout=500ms", "-seed=1"}, saysClean},
		"stream": {[]string{"kill", "-profile=stream", "-kills=2", "-events=20", "-after=500ms", "-timeout=500ms", "-seed=1"},
			`(?s)` + saysClean + `.*0 streams left open, 0 signs of work left`},
		"slow": {[]string{"slow", "-threads=4", "-agent=50ms"}, `last reply came \d+`},
		"sockets": {[]string{"sockets", "-disconnects=4", "-threads=8", "-channels=2", "-every=200ms", "-seed=1"},
			`(?s)1 all cut, .*1 refresh_requested.*none open [1-9]\d* times.*` + saysClean},
		"restarts": {[]string{"restarts", "-restarts=2", "-messages=12", "-threads=8", "-channels=2", "-seed=1"},
			`(?s)restart 1, SIGTERM: 12 said .*restart 2, kill -9: .*[1-9]\d* conversations.history.*` + saysClean},
		"mentions": {[]string{"restarts", "-restarts=1", "-messages=12", "-threads=8", "-channels=2", "-mentions=2", "-tiers", "-new-within=1m", "-old-within=1m", "-seed=1"},
			`(?s)answered in 2 new threads: .*answered in 2 old threads: .* ([1-9]\d*) of their [1-9].*` + saysClean},
		"tenants": {[]string{"tenants", "-rate=20", "-beside=10", "-lasts=1s", "-threads=16"}, `(?s)beside two that are not +acknowledged .*[1-9]\d* times 429.*` + saysClean},
	} {
		t.Run(name, func(t *testing.T) { run.run(t, parley) })
	}
}

// TestAgainstSeveralDaemons does it to two that share a PostgreSQL.
func TestAgainstSeveralDaemons(t *testing.T) {
	parley, server := buildDaemon(t), postgrestest.URL(t)
	for name, run := range map[string]smoke{
		"load": {[]string{"load", "-events=60", "-threads=16", "-connections=4", "-calm=0s", "-warmup=20"}, `(?s)` + saysRate + `.*ratio`},
		"cluster": {[]string{"cluster", "-profile=model", "-kills=3", "-events=60", "-rate=40", "-after=500ms", "-timeout=500ms",
			"-stops=1", "-stop=500ms", "-cuts=200ms", "-seed=1", "-gentle=0.5", "-outage=true"},
			`(?s)3 kills, [12] of them a SIGTERM, .*` + saysClean + `.*PostgreSQL was away for .*[1-9]\d* connections terminated; 1 times`},
		"pace": {[]string{"pace", "-threads=2", "-messages=2", "-gap=500ms"}, `(?s)` + saysClean + `.*4 posts in .* 0 times 429`},
		"slow": {[]string{"slow", "-threads=4", "-agent=50ms"}, `last reply came \d+`},
	} {
		t.Run(name, func(t *testing.T) { run.run(t, parley, "-postgres="+server, "-daemons=2") })
	}
}

func TestWrongUseIsToldApart(t *testing.T) {
	for _, args := range [][]string{nil, {"nonsense"}, {"load", "-nonsense"}, {"load", "extra"}, {"load", "-threads=1"},
		{"load", "-only=nobody"}, {"kill", "-profile=nobody"}, {"kill", "-threads=1"}, {"freeze", "-rate=0"}, {"scale", "-threads=-1"},
		{"load", "-daemons=2"}, {"kill", "-daemons=0"}, {"cluster"}, {"cluster", "-daemons=1", "-stops=-1"},
		{"cluster", "-daemons=1", "-gentle=1.1"}, {"cluster", "-daemons=1", "-outage=true"}, {"pace"}, {"pace", "-daemons=1", "-threads=0"},
		{"slow", "-daemons=2"}, {"slow", "-threads=0"}, {"sockets", "-sockets=0"}, {"sockets", "-daemons=2"}, {"restarts", "-mode=nobody"},
		{"restarts", "-messages=0"}, {"tenants", "-rate=0"}} {
		var wrong usageError
		if err := dispatch(t.Context(), args, &strings.Builder{}); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
