package player_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/internal/player"
	"parley/config"
)

// TestReplayShowsPlansAndCards: the last state of a plan comes before the answer with its card, and a faulty card is named.
func TestReplayShowsPlansAndCards(t *testing.T) {
	t.Parallel()
	asked := 0
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			var run struct{ RunID string }
			_ = json.NewDecoder(r.Body).Decode(&run)
			asked++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprintf(w, `{"runId":%q}`, run.RunID)
			return
		}
		events := []string{
			`{"t":2,"m":"Rooms","d":{"plan":[{"title":"look","status":"running"},{"title":"book"}]},"ts":1}`, `{"t":13,"m":"beds","d":{"completed":1,"total":4},"ts":2}`,
			`{"t":5,"m":"full","ts":3}`, `{"t":2,"m":"Rooms","d":{"plan":[{"title":"look","status":"done"},{"title":"book","status":"running"}]},"ts":4}`,
			`{"t":7,"m":"Here.","d":{"ui_hints":{"title":"Room 7","actions":["Book it"]}},"ts":5}`, `{"t":4,"ts":6}`,
		}
		if asked > 1 {
			events = []string{`{"t":7,"m":"Again.","d":{"ui_hints":{"colour":"red"}},"ts":1}`, `{"t":4,"ts":2}`}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
	}))
	t.Cleanup(agent.Close)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "parley.yaml"), "agents: [{id: helper, kind: run-api, base_url: \""+agent.URL+"\", token: own-c64a08-2f9b51e7-secret}]\n")
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "asked.jsonl")
	write(t, path, bare(`{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"a room?","ts":"1750000000.000001"}`)+
		bare(`{"type":"message","channel":"D1","channel_type":"im","user":"U1","text":"again","ts":"1750000001.000001"}`))
	out := replay(t, player.Recording{Config: c, Files: []string{path}, JSON: true})
	type result struct {
		Error   string
		Replies []struct{ Text string }
	}
	var got []result
	for decoder := json.NewDecoder(strings.NewReader(out)); decoder.More(); {
		var r result
		if err := decoder.Decode(&r); err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	same(t, got, []result{
		{"", []struct{ Text string }{{"Rooms (1 of 2 done)\n✅ look\n⏹️ book (unfinished)\nbeds: ▰▰▱▱▱▱▱▱▱▱ 25% (1 of 4)\n• ⚠️ full"}, {"Here.\n\nRoom 7\n[Book it]"}}},
		{"a card is not shown: ui_hints.colour: is not a hint", []struct{ Text string }{{"Again."}}},
	})
}
