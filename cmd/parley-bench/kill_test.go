package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

func TestGentleKillIsASIGTERM(t *testing.T) {
	trial := startFloor(t, slacktest.Options{})
	c := trial.nodes.all[0]
	for gentle, want := range []syscall.WaitStatus{syscall.WaitStatus(syscall.SIGKILL), 0} { // 0 is a normal exit
		k := &kill{trial: trial, gentle: float64(gentle)}
		before := c.cmd
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
	if err := c.alive(); err != nil {
		t.Error(err)
	}
}

// state returns the letter of a process's state, and skips the test if there is no /proc.
func (c *child) state(t *testing.T) string {
	t.Helper()
	p := readProcess(c.pid())
	if p.state == "" {
		t.Skip("no /proc here")
	}
	return p.state
}

func TestAmbushSuspendsADaemonInAPost(t *testing.T) {
	var c *child
	a := ambush{suspended: make(chan error, 1)}
	states := make(chan string, 2) // the state of the process during each of its posts
	trial := startFloor(t, slacktest.Options{OnCall: a.onCall, Plan: func(slacktest.Call) slacktest.Fault {
		states <- readProcess(c.pid()).state
		return slacktest.Fault{}
	}})
	c = trial.nodes.all[0]
	c.state(t)
	say := func() {
		m := trial.ledger.say(newConversation(3))
		trial.await(t.Context(), m, time.Time{}, trial.push(m))
	}
	a.target.Store(c)
	a.onCall(slacktest.Call{Method: "chat.postMessage", Client: "another daemon"})
	say()
	if err := <-a.suspended; err != nil {
		t.Fatal(err)
	}
	if err := trial.awaitPosts(t.Context(), 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := c.state(t); got != "T" {
		t.Errorf("state %s, want T", got)
	}
	if err := c.signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	say() // the ambush has no target any more
	if err := trial.awaitPosts(t.Context(), 2, time.Minute); err != nil {
		t.Fatal(err)
	}
	if first, second := <-states, <-states; first != "T" || second == "T" {
		t.Errorf("states %s and %s, want T and another", first, second)
	}
}

func TestOutageEndsWhenTheServerAnswers(t *testing.T) {
	b, d := newTestDatabase(t)
	c := &kill{faults: faults{outage: "echo no such cluster >&2; exit 3"}}
	c.trial = &trial{bench: b, nodes: &nodes{database: d}}
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
	mark := filepath.Join(b.work, "mark")
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
