package commands

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// tasks is a service of A2A whose tasks work until finish.
type tasks struct {
	mu    sync.Mutex
	asked map[string]int           // messages, by their id
	done  map[string]chan struct{} // closed by finish, by the task's id, which is that of its message
	seen  chan string              // the ids of new messages
	calls []string
}

func (s *tasks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		fmt.Fprint(w, `{"name":"Tasks","protocolVersion":"0.3.0","url":"/rpc","capabilities":{"streaming":true}}`)
		return
	}
	var asked struct {
		Method string
		Params struct {
			ID      string
			Message struct{ MessageID string }
		}
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil {
		return // the daemon died during the request
	}
	id := asked.Params.ID + asked.Params.Message.MessageID
	s.mu.Lock()
	s.calls = append(s.calls, asked.Method)
	if asked.Method == "message/stream" {
		s.asked[id]++
		s.done[id] = make(chan struct{})
	}
	done := s.done[id]
	s.mu.Unlock()
	state, artifacts := "working", ""
	select {
	case <-done:
		state, artifacts = "completed", `{"artifactId":"a","parts":[{"kind":"text","text":"answer of `+id+`"}]}`
	default:
	}
	task := fmt.Sprintf(`{"kind":"task","id":%q,"contextId":"c","artifacts":[%s],"status":{"state":%q,"message":{"messageId":"s","parts":[{"kind":"text","text":"I work."}]}}}`, id, artifacts, state)
	if asked.Method == "tasks/get" {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":"x","result":%s}`, task)
		return
	}
	event := func(result string) {
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":%s}\n\n", result)
		_ = http.NewResponseController(w).Flush() // the daemon may have died
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event(task)
	if asked.Method == "message/stream" {
		s.seen <- id
	}
	select {
	case <-done:
	case <-r.Context().Done():
		return
	}
	event(fmt.Sprintf(`{"kind":"artifact-update","taskId":%q,"artifact":{"artifactId":"a","parts":[{"kind":"text","text":"answer of %s"}]}}`, id, id))
	event(fmt.Sprintf(`{"kind":"status-update","taskId":%q,"final":true,"status":{"state":"completed"}}`, id))
}

func (s *tasks) finish(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.done[id])
}

// TestKilledWhileATaskWorks kills the daemon while a task works that ends before, and one that ends after the restart. Each question
// is asked once, and has one answer.
func TestKilledWhileATaskWorks(t *testing.T) {
	t.Parallel()
	service := &tasks{asked: map[string]int{}, done: map[string]chan struct{}{}, seen: make(chan string, 8)}
	server := httptest.NewServer(service)
	defer server.Close()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\nagents: [{id: worker, kind: a2a, card: \""+server.URL+"/card\"}]\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: worker\nturns: {coalesce: 0s}\nweb: {tokens: [{id: a, token: "+webToken+", name: c}]}\n")
	daemon := start(t, dir, os.Args[0], "run")
	address := daemon.address()
	for k, early := range []bool{true, false} {
		thread := fmt.Sprintf("6ba7b81%d-9dad-41d1-80b4-00c04fd430c8", k)
		if status, raw := httpCall(t, http.MethodPost, address+"/api/v1/workspaces/ours/messages", webToken, fmt.Sprintf(`{"thread_id":%q,"content":"work"}`, thread), ""); status != http.StatusAccepted {
			t.Fatal(status, raw)
		}
		id := <-service.seen
		reads := func(path, want string) {
			t.Helper()
			for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
				_, raw := httpCall(t, http.MethodGet, address+path, webToken, "", "")
				if n := strings.Count(raw, want); n == 1 {
					return
				} else if n > 1 || time.Now().After(deadline) {
					t.Fatalf("%q is not in %s", want, raw)
				}
			}
		}
		reads("/api/v1/runs/"+id+"/events", "I work.") // so the task is known durably
		if err := daemon.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = daemon.cmd.Wait() // killed by the test
		if early {
			service.finish(id)
		}
		daemon = start(t, dir, os.Args[0], "run")
		address = daemon.address()
		if !early {
			service.finish(id)
		}
		reads("/api/v1/workspaces/ours/threads/"+thread+"/messages", `"answer of `+id+`"`)
	}
	service.mu.Lock()
	defer service.mu.Unlock()
	for id, times := range service.asked {
		if times != 1 {
			t.Errorf("%s was asked %d times", id, times)
		}
	}
	if len(service.asked) != 2 {
		t.Errorf("%d messages: %q", len(service.asked), service.calls)
	}
}
