package main

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

// state is the letter that /proc has for a child.
func (c *child) state(t *testing.T) string {
	t.Helper()
	p, err := readProcess(c.pid())
	if err != nil {
		t.Skip("no /proc here")
	}
	return p.state
}

func TestADaemonIsStoppedInTheMiddleOfAPost(t *testing.T) {
	var c *child
	seen := make(chan string, 2) // the state of the process while each of its posts was judged
	a := &ambush{faults: func(slacktest.Call) slacktest.Fault {
		p, _ := readProcess(c.pid()) // checked below
		seen <- p.state
		return slacktest.Fault{}
	}}
	api, err := startAPI(slacktest.Options{Plan: a.plan})
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	c = startFloor(t, api)
	c.state(t)
	l := newLedger(echoed)
	say := func() {
		line := &line{address: c.address}
		defer line.close()
		m := l.say(newConversation(3))
		if status, err := line.post(signed(c.address, m.said(), 0, time.Now())); status != http.StatusOK || err != nil {
			t.Fatal(status, err)
		}
	}
	sprung := a.await(c)
	a.spring("another")
	say()
	if err := <-sprung; err != nil {
		t.Fatal(err)
	}
	if _, err := api.Await(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if got := c.state(t); got != "T" {
		t.Errorf("its state is %s", got)
	}
	if err := c.thaw(); err != nil {
		t.Fatal(err)
	}
	say() // and nobody is waited for any more
	if _, err := api.Await(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if first, second := <-seen, <-seen; first != "T" || second == "T" {
		t.Errorf("states %s, %s", first, second)
	}
}

func TestNobodyIsSeizedTwice(t *testing.T) {
	n := &nodes{all: []*child{{}, {}, {}}}
	random := rand.New(rand.NewPCG(1, 1))
	got := map[*child]bool{}
	for range n.all {
		got[n.seize(random)] = true
	}
	if len(got) != 3 {
		t.Errorf("%d of 3 daemons were seized", len(got))
	}
	freed := n.all[1]
	freed.held.Unlock()
	if n.seize(random) != freed {
		t.Error("another than the one that was let go")
	}
}
