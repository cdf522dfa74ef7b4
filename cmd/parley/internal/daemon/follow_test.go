package daemon_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/stream"
)

// pieces is an agent behind a webhook that answers with the pieces that a test gives it.
type pieces struct {
	runs chan string // the runs that it was asked for
	next chan string // closed after the last piece
	gone chan string // the runs whose requests the daemon has ended
}

func newPieces(t *testing.T) (*pieces, string) {
	t.Helper()
	p := &pieces{runs: make(chan string, 1), next: make(chan string), gone: make(chan string, 1)}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			RunID string `json:"run_id"`
		}
		if !takesInput(t, w, r, &body) {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		p.runs <- body.RunID
		for open := true; open; {
			var piece string
			select {
			case piece, open = <-p.next:
			case <-r.Context().Done():
				p.gone <- body.RunID
				return
			}
			data := fmt.Sprintf(`{"content":%q}`, piece)
			if !open {
				data = "[DONE]"
			}
			_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(hook.Close)
	return p, hook.URL
}

// openPieces starts two nodes on one store, whose agent speaks in pieces.
func openPieces(t *testing.T, p plan) (agent *pieces, one, other *harness) {
	t.Helper()
	agent, url := newPieces(t)
	p.store = postgrestest.URL(t)
	p.files = map[string]string{"workspaces/ours.yaml": `
id: ours
platform: web
agent: pieces
web: {tokens: [{id: olivia, token: ` + ownToken + `, name: Olivia}]}
turns: {coalesce: 0s}
`}
	p.helper = `
  - {id: pieces, kind: webhook, url: "` + url + `", secret: webhook-secret-of-the-test}`
	return agent, open(t, p), open(t, p)
}

// heard is a stream of a run, as its client hears it.
type heard struct {
	h     *harness
	lines *bufio.Scanner
	last  string // the id of the last message
}

// followRun opens the stream of a run.
func (h *harness) followRun(path string) *heard {
	h.t.Helper()
	return &heard{h, h.stream(path, ownToken, ""), ""}
}

// next returns the next message as "TYPE text"; "" at the stream's end.
func (s *heard) next() string {
	s.h.t.Helper()
	for s.lines.Scan() {
		if id, ok := strings.CutPrefix(s.lines.Text(), "id: "); ok {
			s.last = id
		}
		if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			m := decode[stream.Message](s.h.t, data)
			if m.Type == stream.StreamingChunk && m.Text == "" {
				continue // the end of the tokens, which is stored if there is time before the run's end
			}
			return m.Type.String() + " " + m.Text
		}
	}
	return ""
}

// TestClientsFollowARun on two nodes with one store: each hears the tokens while the agent
// speaks, the answer and the end. Afterwards the history has no tokens.
func TestClientsFollowARun(t *testing.T) {
	t.Parallel()
	agent, one, other := openPieces(t, plan{})
	one.postWeb("so?")
	run := <-agent.runs
	path := "/runs/" + thread + "/" + run
	streams := []*heard{one.followRun(path + "/stream"), other.followRun("/api/v1" + path + "/stream")}
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

// TestARunIsFollowedToAnotherNode stops the node of a run. The other node asks the agent again,
// and a client that comes back there with its last id hears the rest, each message once.
func TestARunIsFollowedToAnotherNode(t *testing.T) {
	t.Parallel()
	agent, one, other := openPieces(t, plan{stop: 6 * time.Second})
	one.postWeb("so?")
	run := <-agent.runs
	path := "/runs/" + thread + "/" + run + "/stream"
	s := one.followRun(path)
	hear := func(want string) {
		t.Helper()
		if got := s.next(); got != want {
			t.Fatalf("heard %q, want %q\n%s", got, want, s.h.log)
		}
	}
	hear("QUESTION so?")
	agent.next <- "It "
	hear("STREAMING_CHUNK It ")
	if err := one.stop(); err != nil {
		t.Fatal(err)
	}
	hear("")
	if gone, again := <-agent.gone, <-agent.runs; gone != run || again != run {
		t.Errorf("asked as run %q, then %q; the request of %q was ended", run, again, gone)
	}
	s = &heard{other, other.stream(path, ownToken, s.last), ""}
	agent.next <- "It snows."
	hear("THOUGHT The answer begins again.") // it replaces the tokens before it
	hear("STREAMING_CHUNK It snows.")
	close(agent.next)
	hear("ANSWER It snows.")
	hear("COMPLETE ")
	hear("")
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
