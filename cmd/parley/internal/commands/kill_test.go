package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/ingest/journal/listing"
)

// TestKilledBetweenRefusalAndRepetition kills the daemon while a model's server refuses the form of a request,
// and before it answers the repetition in another form. The next daemon has learnt nothing. It answers the
// question once, and no failure is reported.
func TestKilledBetweenRefusalAndRepetition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		killAt   int32 // the request during which the daemon ends
		requests int32 // for two questions
	}{
		"during the refusal":                 {1, 4},
		"before the repetition has answered": {2, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			arrived, killed := make(chan struct{}), make(chan struct{})
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				const refusal = `{"error":{"message":"System role not supported","type":"invalid_request_error"}}`
				body, _ := io.ReadAll(r.Body) // an incomplete body has no system role
				refuses, kills := strings.Contains(string(body), `"system"`), asked.Add(1) == c.killAt
				switch {
				case kills && refuses:
					w.Header().Set("Content-Length", fmt.Sprint(len(refusal)))
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, refusal[:len(refusal)-1])
					w.(http.Flusher).Flush()
				case refuses:
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, refusal)
				case !kills:
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, `data: {"choices":[{"delta":{"content":"Yes."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
				}
				if kills {
					close(arrived)
					<-killed
				}
			}))
			defer model.Close()
			dir := t.TempDir()
			write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nagents: [{id: m, kind: openai, model: m, base_url: \""+model.URL+"/v1\"}]\n")
			write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: m\nturns: {coalesce: 0s}\nweb: {tokens: [{id: a, token: "+webToken+", name: c}]}\n")
			first := start(t, dir, os.Args[0], "run")
			ours := conversation{t, first.address()}
			ours.say("is it dry?")
			<-arrived
			if err := first.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = first.cmd.Wait() // killed by the test
			close(killed)
			second := start(t, dir, os.Args[0], "run")
			ours.address = second.address()
			ours.await("is it dry?", "Yes.")
			killedRun(t, dir)
			ours.say("and now?")
			ours.await("is it dry?", "Yes.", "and now?", "Yes.")
			if n := asked.Load(); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
		})
	}
}

// killedRun checks that the operator sees the request of the only run that ended with its daemon.
func killedRun(t *testing.T, dir string) {
	t.Helper()
	var run listing.Run
	got := parley(t, dir, "runs", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &run); err != nil || len(run.Attempts) != 2 || !run.Attempts[0].Lost() || run.Attempts[1].Lost() {
		t.Errorf("%v: %+v", err, got)
	}
	if got := parley(t, dir, "runs", "show", run.ID); !strings.Contains(got.stdout, "attempt 1  lost: ") {
		t.Errorf("%+v", got)
	}
	if got := parley(t, dir, "why", run.ID); !strings.Contains(got.stdout, "1 is lost: ") {
		t.Errorf("%+v", got)
	}
}

// webToken is the token of a web workspace.
const webToken = "ci-7f3a9c51d2e84b60a1c35e97"

// address waits until the daemon is ready, and returns its address.
func (p *process) address() string {
	p.t.Helper()
	var ready struct{ Listen string }
	if err := json.Unmarshal([]byte(p.await("parley is ready")), &ready); err != nil {
		p.t.Fatal(err)
	}
	return ready.Listen
}

// conversation is a thread of the web workspace ours.
type conversation struct {
	t       *testing.T
	address string
}

const threadID = "6ba7b810-9dad-41d1-80b4-00c04fd430c8"

func (c conversation) call(method, path, body string) []byte {
	c.t.Helper()
	return c.at(method, "/api/v1/workspaces/ours/"+path, body)
}

// at calls a route with the token.
func (c conversation) at(method, path, body string) []byte {
	c.t.Helper()
	status, raw := httpCall(c.t, method, c.address+path, webToken, body, "")
	if status == 0 || status >= http.StatusBadRequest {
		c.t.Fatalf("%s %s: %d %s", method, path, status, raw)
	}
	return []byte(raw)
}

func (c conversation) say(text string) {
	c.t.Helper()
	body, _ := json.Marshal(map[string]string{"thread_id": threadID, "content": text}) // strings always encode
	c.call(http.MethodPost, "messages", string(body))
}

// await waits until the thread has as many messages, and compares them.
func (c conversation) await(want ...string) {
	c.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(10 * time.Millisecond) {
		var list struct{ Messages []struct{ Content string } }
		raw := c.call(http.MethodGet, "threads/"+threadID+"/messages", "")
		if err := json.Unmarshal(raw, &list); err != nil {
			c.t.Fatal(err)
		}
		if len(list.Messages) < len(want) && time.Now().Before(deadline) {
			continue
		}
		var got []string
		for _, m := range list.Messages {
			got = append(got, m.Content)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			c.t.Fatalf("the thread is %q, want %q", got, want)
		}
		return
	}
}
