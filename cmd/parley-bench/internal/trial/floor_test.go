package trial

import (
	"net/http"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/rigtest"
	"parley/ingest/journal/postgres/postgrestest"
)

// TestMain lets the test binary run as the floor, like the tool's own binary.
func TestMain(m *testing.M) { rigtest.Main(m) }

// startFloor starts a trial of the floor.
func startFloor(t *testing.T, options slacktest.Options) *Trial {
	t.Helper()
	trial, err := Start(t.Context(), rigtest.NewBench(t), "floor", Setup{Floor: true, Slack: options})
	if err != nil {
		t.Fatal(err)
	}
	return trial
}

func TestFloorAnswersEachEventOnce(t *testing.T) {
	trial := startFloor(t, slacktest.Options{})
	room := ledger.NewRoom(0, ledger.DefaultChannels)
	for _, c := range []*ledger.Conversation{room, room, ledger.NewRoom(3, ledger.DefaultChannels)} {
		m := trial.Ledger.Say(c)
		trial.Await(t.Context(), m, time.Time{}, trial.Push(m), trial.Push(m))
	}
	if err := trial.AwaitPosts(t.Context(), 3, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := trial.Finish(); err != nil { // the floor finishes the replies that it has begun
		t.Error(err)
	}
}

func TestFloorRefusesAStaleSignature(t *testing.T) {
	trial := startFloor(t, slacktest.Options{})
	m := trial.Ledger.Say(ledger.NewRoom(0, ledger.DefaultChannels))
	url := "http://" + trial.Nodes.All[0].Address + rig.HookPath
	request, err := slacktest.NewRequest(t.Context(), url, rig.SigningSecret, time.Now().Add(-time.Hour), m.Slack().Event())
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
	c := startFloor(t, slacktest.Options{}).Nodes.All[0]
	first := c.PID()
	if err := c.Alive(); err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Alive(); err == nil {
		t.Error("alive returns no error after a kill")
	}
	if _, err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.PID() == first {
		t.Error("start did not start a new process")
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

func TestSeveralFloorsShareADatabase(t *testing.T) {
	server := postgrestest.URL(t) // dropped after the bench's database
	b := rigtest.NewBench(t)
	b.Postgres, b.Daemons = server, 2
	trial, err := Start(t.Context(), b, "floor", Setup{Floor: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		m := trial.Ledger.Say(ledger.NewRoom(3, ledger.DefaultChannels))
		trial.Await(t.Context(), m, time.Time{}, trial.Push(m), trial.Push(m)) // each floor gets one
	}
	if err := trial.AwaitPosts(t.Context(), 3, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := trial.Finish(); err != nil {
		t.Fatal(err)
	}
	rigtest.CheckCounts(t, trial.Nodes, map[string]int{"envelopes WHERE done": 3, "messages": 3, "deliveries WHERE state = 'sent' AND sent <> ''": 3})
}
