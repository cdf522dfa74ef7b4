package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

// startFloor runs the floor as a child process.
func startFloor(t *testing.T, api *slacktest.Server) *child {
	t.Helper()
	b := &bench{work: t.TempDir(), out: t.Output()}
	n, err := b.newFloors(t.Context(), theFloor, nodesFlags{}, settings{api: api})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.end)
	if err := n.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n.all[0]
}

func startTestAPI(t *testing.T) *slacktest.Server {
	t.Helper()
	api, err := startAPI(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	return api
}

func TestTheFloorAnswersEachEventOnce(t *testing.T) {
	api := startTestAPI(t)
	c := startFloor(t, api)
	line := &line{address: c.address}
	defer line.close()
	l := newLedger(echoed)
	room := newConversation(0)
	for _, m := range []*message{l.say(room), l.say(room), l.say(newConversation(3))} {
		for range 2 {
			if status, err := line.post(signed(c.address, m.said(), 0, time.Now())); status != http.StatusOK || err != nil {
				t.Fatal(status, err)
			}
		}
		m.revisions[0].acked = time.Now()
	}
	forged := signed(c.address, l.messages[0].said(), 0, time.Now().Add(-time.Hour))
	if status, err := line.post(forged); status != http.StatusUnauthorized || err != nil {
		t.Errorf("a stale signature: %d, %v", status, err)
	}
	if _, err := api.Await(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if err := c.stop(); err != nil { // it ends what it has begun
		t.Fatal(err)
	}
	verdict := l.check(api.Posts())
	delete(verdict.counts, disordered)
	if verdict.total() > 0 {
		t.Error(verdict)
	}
}

func TestAChildIsKilledAndStartedAgain(t *testing.T) {
	c := startFloor(t, startTestAPI(t))
	first := c.pid()
	if err := c.alive(); err != nil {
		t.Fatal(err)
	}
	if err := c.kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.alive(); err == nil {
		t.Error("alive after its death")
	}
	if _, err := c.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.pid() == first {
		t.Error("the same process")
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

func TestAChildThatEndsBeforeItIsReadyIsAnError(t *testing.T) {
	c, err := newChild("/bin/sh", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.args = []string{"-c", "echo the port is taken; exit 3"}
	if _, err := c.start(t.Context()); err == nil || !strings.Contains(err.Error(), "the port is taken") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v", err)
	}
}

func TestAFilledStoreHoldsWhatItShould(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "parley.db")
	l := newLedger(echoed)
	if err := fill(t.Context(), path, 50, 20, l); err != nil {
		t.Fatal(err)
	}
	db, err := openStore(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	left, err := readBacklog(t.Context(), db)
	if want := (backlog{envelopes: 20}); left != want || err != nil {
		t.Errorf("backlog %v, %v", left, err)
	}
	var stored int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM messages`).Scan(&stored); err != nil || stored != 50 {
		t.Errorf("%d messages, %v", stored, err)
	}
	for _, m := range l.messages {
		if m.revisions[0].acked.IsZero() {
			t.Errorf("m%d is not in custody", m.id)
		}
	}
}
