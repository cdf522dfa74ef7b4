package daemon_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/assembly/stream"
	"parley/ingest/journal/postgres/postgrestest"
)

// pieces is an agent behind a webhook that answers with the pieces that a test gives it.
type pieces struct {
	runs chan string // the runs that it was asked for
	next chan string // closed after the last piece
}

func newPieces(t *testing.T) (*pieces, string) {
	t.Helper()
	p := &pieces{runs: make(chan string, 1), next: make(chan string)}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			RunID string `json:"run_id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		p.runs <- body.RunID
		for piece := range p.next {
			_, _ = fmt.Fprintf(w, "data: {\"content\":%q}\n\n", piece)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = w.Write([]byte("data: [DONE]\n\n"))
	}))
	t.Cleanup(hook.Close)
	return p, hook.URL
}

// heard is a stream of a run, as its client hears it.
type heard struct {
	h     *harness
	lines *bufio.Scanner
}

// followRun opens the stream of a run.
func (h *harness) followRun(path string) heard {
	h.t.Helper()
	return heard{h, h.stream(path, ownToken, "")}
}

// next returns the next message as "TYPE text"; "" at the stream's end.
func (s heard) next() string {
	s.h.t.Helper()
	for s.lines.Scan() {
		if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			m := decode[stream.Message](s.h.t, data)
			return m.Type.String() + " " + m.Text
		}
	}
	return ""
}

// TestClientsFollowARun on two nodes with one store: each hears the tokens while the agent
// speaks, the answer and the end. Afterwards the history has no tokens.
func TestClientsFollowARun(t *testing.T) {
	t.Parallel()
	agent, url := newPieces(t)
	p := plan{store: postgrestest.URL(t), files: map[string]string{"workspaces/ours.yaml": `
id: ours
platform: web
agent: pieces
web: {tokens: [{id: olivia, token: ` + ownToken + `, name: Olivia}]}
turns: {coalesce: 0s}
`}, helper: `
  - {id: pieces, kind: webhook, url: "` + url + `", secret: webhook-secret-of-the-test}`}
	one, other := open(t, p), open(t, p)
	one.postWeb("so?")
	run := <-agent.runs
	path := "/runs/" + thread + "/" + run
	streams := []heard{one.followRun(path + "/stream"), other.followRun("/api/v1" + path + "/stream")}
	hear := func(want string) {
		t.Helper()
		for _, s := range streams {
			if got := s.next(); got != want {
				t.Fatalf("heard %q, want %q\n%s", got, want, s.h.log)
			}
		}
	}
	hear("QUESTION so?")
	agent.next <- "It "
	hear("STREAMING_CHUNK It ")
	agent.next <- "rains."
	hear("STREAMING_CHUNK rains.")
	close(agent.next)
	hear("ANSWER It rains.")
	hear("COMPLETE ")
	hear("")

	request, err := http.NewRequestWithContext(other.ctx, http.MethodGet, other.url+path+"/updates", nil)
	if err == nil {
		request.Header.Set("Authorization", "Bearer "+ownToken)
	}
	history := decode[struct{ Messages []stream.Message }](t, other.send(request, err).body)
	var got []string
	for _, m := range history.Messages {
		got = append(got, m.Type.String()+" "+m.Text)
	}
	if diff := cmp.Diff([]string{"QUESTION so?", "ANSWER It rains.", "COMPLETE "}, got); diff != "" {
		t.Error(diff)
	}
}

// TestStreamsEndWithTheServer: a stop does not wait for clients that follow.
func TestStreamsEndWithTheServer(t *testing.T) {
	t.Parallel()
	l := openLater(t)
	run := l.take()
	s := l.followRun("/api/v1/agent/runs/" + run + "/stream")
	if got := s.next(); got != "QUESTION hi" {
		t.Errorf("heard %q", got)
	}
	if err := l.stop(); err != nil {
		t.Error(err)
	}
	if got := s.next(); got != "" {
		t.Errorf("heard %q", got)
	}
}

// TestASignalStopsARun, and its readers learn that it has ended.
func TestASignalStopsARun(t *testing.T) {
	t.Parallel()
	l := openLater(t)
	run := l.take()
	s := l.followRun("/api/v1/agent/runs/" + run + "/stream")
	request, err := http.NewRequestWithContext(l.ctx, http.MethodPost, l.url+"/runs/"+run+"/signals", strings.NewReader(`{"signal":"Stop"}`))
	if err == nil {
		request.Header.Set("Authorization", "Bearer "+ownToken)
		request.Header.Set("Content-Type", "application/json")
	}
	if got := l.send(request, err); got.status != http.StatusAccepted {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := []string{s.next(), s.next(), s.next()}; got[0] != "QUESTION hi" || got[1] != "TERMINATED Stopped." || got[2] != "" {
		t.Errorf("heard %q", got)
	}
}
