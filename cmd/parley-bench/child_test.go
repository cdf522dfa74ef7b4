package main

import (
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

func TestFloorAnswersEachEventOnce(t *testing.T) {
	trial := startFloor(t, slacktest.Options{})
	room := newConversation(0)
	for _, c := range []*conversation{room, room, newConversation(3)} {
		m := trial.ledger.say(c)
		trial.await(t.Context(), m, time.Time{}, trial.push(m), trial.push(m))
	}
	if err := trial.awaitPosts(t.Context(), 3, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := trial.finish(); err != nil { // the floor finishes the replies that it has begun
		t.Error(err)
	}
}

func TestFloorRefusesAStaleSignature(t *testing.T) {
	trial := startFloor(t, slacktest.Options{})
	m := trial.ledger.say(newConversation(0))
	url := "http://" + trial.nodes.all[0].address + hookPath
	request, err := slacktest.NewRequest(t.Context(), url, signingSecret, time.Now().Add(-time.Hour), m.slack().Event())
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", response.StatusCode)
	}
}

func TestChildIsKilledAndStartedAgain(t *testing.T) {
	c := startFloor(t, slacktest.Options{}).nodes.all[0]
	first := c.pid()
	if err := c.alive(); err != nil {
		t.Fatal(err)
	}
	if err := c.kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.alive(); err == nil {
		t.Error("alive returns no error after a kill")
	}
	if _, err := c.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.pid() == first {
		t.Error("start did not start a new process")
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

func TestChildThatEndsBeforeItIsReady(t *testing.T) {
	c, err := newTestBench(t).newChild("/bin/sh", "child")
	if err != nil {
		t.Fatal(err)
	}
	c.args = []string{"-c", "echo the port is taken; exit 3"}
	_, err = c.start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the port is taken") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v, want the log and the exit status", err)
	}
}

func TestLockOneLocksDifferentNodes(t *testing.T) {
	n := &nodes{all: []*child{{}, {}, {}}}
	random := rand.New(rand.NewPCG(1, 1))
	locked := map[*child]bool{}
	for range n.all {
		locked[n.lockOne(random)] = true
	}
	if len(locked) != 3 {
		t.Errorf("%d of 3 nodes were locked", len(locked))
	}
	free := n.all[1]
	free.Unlock()
	if n.lockOne(random) != free {
		t.Error("lockOne returned a node that was locked already")
	}
}

func TestFillStoresMessagesAndPendingEnvelopes(t *testing.T) {
	l := newLedger()
	c := &child{dir: t.TempDir()}
	if err := fill(t.Context(), c.storePath(), 50, 20, l); err != nil {
		t.Fatal(err)
	}
	n := &nodes{all: []*child{c}}
	var err error
	if n.store, err = n.openStore(); err != nil {
		t.Fatal(err)
	}
	defer n.store.Close()
	left, err := n.backlog(t.Context())
	if want := (backlog{envelopes: 20}); left != want || err != nil {
		t.Errorf("backlog %v, %v in %s", left, err, filepath.Base(c.dir))
	}
	n.checkCounts(t, map[string]int{"messages": 50})
	if got := l.due(); got != 20 {
		t.Errorf("%d of 20 messages were accepted", got)
	}
}

// checkCounts compares the numbers of rows in the store.
func (n *nodes) checkCounts(t *testing.T, counts map[string]int) {
	t.Helper()
	for rows, want := range counts {
		var got int
		if err := n.store.QueryRowContext(t.Context(), "SELECT count(*) FROM "+rows).Scan(&got); got != want || err != nil {
			t.Errorf("%d %s, want %d; %v", got, rows, want, err)
		}
	}
}
