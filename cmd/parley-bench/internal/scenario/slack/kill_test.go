package slack

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/rigtest"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/journal/postgres/postgrestest"
)

// TestMain lets the test binary run as the floor, like the tool's own binary.
func TestMain(m *testing.M) { rigtest.Main(m) }

func TestGentleKillIsASIGTERM(t *testing.T) {
	trial := startFloor(t, slacktest.Options{})
	c := trial.Nodes.All[0]
	for gentle, want := range []syscall.WaitStatus{syscall.WaitStatus(syscall.SIGKILL), 0} { // 0 is a normal exit
		k := &Kill{Trial: trial, gentle: float64(gentle)}
		before := c.Cmd
		if err := k.killOne(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := before.ProcessState.Sys(); got != want {
			t.Errorf("gentle %d: the process ended with %v, want %v", gentle, got, want)
		}
		if len(k.starts) != 1 || len(k.stops) != gentle {
			t.Errorf("gentle %d: %d starts, %d stops", gentle, len(k.starts), len(k.stops))
		}
	}
	if err := c.Alive(); err != nil {
		t.Error(err)
	}
}

// state returns the letter of a process's state, and skips the test if there is no /proc.
func state(t *testing.T, c *rig.Child) string {
	t.Helper()
	p := figure.ReadProcess(c.PID())
	if p.State == "" {
		t.Skip("no /proc here")
	}
	return p.State
}

func TestAmbushSuspendsADaemonInAPost(t *testing.T) {
	var c *rig.Child
	a := ambush{suspended: make(chan error, 1)}
	states := make(chan string, 2) // the state of the process during each of its posts
	trial := startFloor(t, slacktest.Options{OnCall: a.onCall, Plan: func(slacktest.Call) slacktest.Fault {
		states <- figure.ReadProcess(c.PID()).State
		return slacktest.Fault{}
	}})
	c = trial.Nodes.All[0]
	state(t, c)
	say := func() {
		m := trial.Ledger.Say(ledger.NewRoom(3, ledger.DefaultChannels))
		trial.Await(t.Context(), m, time.Time{}, trial.Push(m))
	}
	a.target.Store(c)
	a.onCall(slacktest.Call{Method: "chat.postMessage", Client: "another daemon"})
	say()
	if err := <-a.suspended; err != nil {
		t.Fatal(err)
	}
	if err := trial.AwaitPosts(t.Context(), 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := state(t, c); got != "T" {
		t.Errorf("state %s, want T", got)
	}
	if err := c.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	say() // the ambush has no target any more
	if err := trial.AwaitPosts(t.Context(), 2, time.Minute); err != nil {
		t.Fatal(err)
	}
	if first, second := <-states, <-states; first != "T" || second == "T" {
		t.Errorf("states %s and %s, want T and another", first, second)
	}
}

func TestOutageEndsWhenTheServerAnswers(t *testing.T) {
	server := postgrestest.URL(t) // dropped after the bench's database
	b := rigtest.NewBench(t)
	b.Postgres = server
	c := &Kill{faults: faults{outage: "echo no such cluster >&2; exit 3"}}
	var err error
	if c.Trial, err = trial.New(t.Context(), b, "floor", trial.Setup{Floor: true}); err != nil {
		t.Fatal(err)
	}
	if c.outageSince(time.Now()) {
		t.Error("the outage began without its command")
	}
	if err := c.interrupt(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "no such cluster") {
		t.Errorf("error %v, want the output of the command", err)
	}
	begun := time.Now()
	if !c.outageSince(begun) {
		t.Error("the outage ended before the server answered")
	}
	mark := filepath.Join(b.Work, "mark")
	c.outage = "touch " + mark
	if err := c.interrupt(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if !c.outageSince(begun) || c.outageSince(time.Now()) {
		t.Errorf("the outage was from %v to %v", c.begun, c.ended)
	}
	if found, err := filepath.Glob(mark); len(found) != 1 {
		t.Errorf("the command did not run: %v", err)
	}
}

// startFloor starts a trial of the floor.
func startFloor(t *testing.T, options slacktest.Options) *trial.Trial {
	t.Helper()
	started, err := trial.Start(t.Context(), rigtest.NewBench(t), "floor", trial.Setup{Floor: true, Slack: options})
	if err != nil {
		t.Fatal(err)
	}
	return started
}

// TestSuspensionsAreDescribed checks that only those of the daemon shortly before the time are.
func TestSuspensionsAreDescribed(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	f := faults{stills: []still{{"parley-1", at(2), at(6)}, {"parley-0", at(2), at(6)}, {"parley-1", at(20), at(30)}}}
	if got, want := f.describe("parley-1", at(10)), ", suspended from 8s to 4s before it"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := f.describe("parley-1", at(200)); got != "" {
		t.Errorf("%q long after the suspensions", got)
	}
}
