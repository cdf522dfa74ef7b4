package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const leadSecret, coderSecret = "lead-7f3a9c51d2e84b60a1c35e97", "coder-7f3a9c51d2e84b60a1c35e97"

// workers are the agents lead and coder over HTTP. lead launches three workstreams for each question, with keys, and
// answers it and each report later. coder answers each task later. A call that the daemon does not take is made again
// until it does.
type workers struct {
	*httptest.Server
	t       *testing.T
	mu      sync.Mutex
	address string              // of the daemon
	tasks   map[string][]string // the runs that asked coder for a task
	runs    map[string]string   // the run of lead for a question
	left    int                 // calls until the daemon shall die
	kill    chan struct{}       // gets one before the last of them
}

func startWorkers(t *testing.T) *workers {
	w := &workers{t: t, tasks: map[string][]string{}, runs: map[string]string{}, kill: make(chan struct{}, 1)}
	w.Server = httptest.NewServer(http.HandlerFunc(w.take))
	t.Cleanup(w.Close)
	return w
}

// take takes a run, and works for it after the response.
func (w *workers) take(rw http.ResponseWriter, r *http.Request) {
	var input struct {
		RunID    string                           `json:"run_id"`
		Messages []struct{ Role, Content string } `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&input); err != nil || len(input.Messages) == 0 {
		return // the daemon died during the request
	}
	rw.WriteHeader(http.StatusAccepted)
	last := input.Messages[len(input.Messages)-1]
	w.mu.Lock()
	defer w.mu.Unlock()
	switch _, question, asks := strings.Cut(last.Content, "question "); {
	case r.URL.Path == "/coder":
		_, task, _ := strings.Cut(last.Content, "task ")
		if task = strings.Fields(task)[0]; !slices.Contains(w.tasks[task], input.RunID) {
			w.tasks[task] = append(w.tasks[task], input.RunID)
		}
		go w.reply(coderSecret, input.RunID, "coder did "+task)
	case last.Role == "system" || !asks:
		go w.reply(leadSecret, input.RunID, "lead "+input.RunID)
	default:
		question = strings.Fields(question)[0]
		w.runs[question] = input.RunID
		go w.launch(input.RunID, question)
	}
}

// launch launches the workstreams for a question, and answers it.
func (w *workers) launch(run, question string) {
	for n := range 3 {
		w.call(leadSecret, "/runs/"+run+"/workstreams", fmt.Sprintf(`{"task":"task %s/%d","agent":"coder"}`, question, n), fmt.Sprint(n))
	}
	w.reply(leadSecret, run, "lead "+run)
}

// reply answers a run.
func (w *workers) reply(secret, run, text string) {
	w.call(secret, "/api/v1/runs/"+run+"/reply", `{"content":"`+text+`"}`, "")
}

// call makes a request until the daemon has taken it, or has an earlier one in its place.
func (w *workers) call(secret, path, body, key string) {
	for first := true; w.t.Context().Err() == nil; first = false {
		w.mu.Lock()
		address := w.address
		if first {
			if w.left--; w.left == 0 {
				w.kill <- struct{}{}
			}
		}
		w.mu.Unlock()
		status, _ := httpCall(w.t, http.MethodPost, address+path, secret, body, key)
		if status != 0 && status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
			if status >= http.StatusBadRequest && status != http.StatusConflict {
				w.t.Errorf("%s: %d", path, status)
			}
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

// httpCall makes a request to a daemon. The status is 0 if there is no response.
func httpCall(t *testing.T, method, url, secret, body, key string) (status int, response string) {
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+url, strings.NewReader(body))
	if err != nil {
		return 0, ""
	}
	request.Header.Set("Authorization", "Bearer "+secret)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, ""
	}
	defer got.Body.Close()
	raw, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, ""
	}
	return got.StatusCode, string(raw)
}

// thread returns the texts of a thread, as soon as it has three reports and an answer after them.
func (w *workers) thread(id string) (texts []string) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		var list struct{ Messages []struct{ Content string } }
		status, raw := httpCall(w.t, http.MethodGet, w.address+"/api/v1/workspaces/ours/threads/"+id+"/messages", webToken, "", "")
		if err := json.Unmarshal([]byte(raw), &list); err != nil || status != http.StatusOK {
			w.t.Fatalf("%d %s %v", status, raw, err)
		}
		texts = nil
		for _, m := range list.Messages {
			texts = append(texts, m.Content)
		}
		if n := len(texts); strings.Count(strings.Join(texts, "\n"), "is completed") >= 3 && strings.HasPrefix(texts[n-1], "lead ") || time.Now().After(deadline) {
			return texts
		}
	}
}

// TestKilledWithWorkstreams kills the daemon once for each question: while the daemon asks the agent, during
// launches, while children answer, and while the daemon reports their ends.
// Each task is asked once, each result is reported once, no child is left at work, and each answer is in the
// thread once.
func TestKilledWithWorkstreams(t *testing.T) {
	t.Parallel()
	kills := []int{1, 2, 3, 4, 5, 6, 7, 8, 9} // of at least nine calls for a question
	if testing.Short() {
		kills = []int{3, 7}
	}
	w := startWorkers(t)
	dir := t.TempDir()
	write(t, dir, "parley.yaml", `listen: 127.0.0.1:0
agents:
  - {id: lead, kind: webhook, url: "`+w.URL+`/lead", secret: `+leadSecret+`, workstreams: {agents: [coder], max: 3}}
  - {id: coder, kind: webhook, url: "`+w.URL+`/coder", secret: `+coderSecret+`}
`)
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: lead\nturns: {coalesce: 0s}\nweb: {tokens: [{id: a, token: "+webToken+", name: c}]}\n")
	var daemon *process
	begin := func() {
		daemon = start(t, dir, os.Args[0], "run")
		address := daemon.address()
		w.mu.Lock()
		w.address = address
		w.mu.Unlock()
	}
	begin()
	for n, at := range kills {
		thread := fmt.Sprintf("6ba7b81%d-9dad-41d1-80b4-00c04fd430c8", n)
		w.mu.Lock()
		w.left = at
		w.mu.Unlock()
		w.call(webToken, "/api/v1/workspaces/ours/messages", fmt.Sprintf(`{"thread_id":%q,"content":"question %d"}`, thread, n), fmt.Sprint(n))
		<-w.kill
		if err := daemon.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = daemon.cmd.Wait() // killed by the test
		begin()
		w.check(thread, fmt.Sprint(n))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tasks) != 3*len(kills) {
		t.Errorf("coder was asked for %v", w.tasks)
	}
	for task, runs := range w.tasks {
		if len(runs) != 1 {
			t.Errorf("coder was asked for %s by the runs %q", task, runs)
		}
	}
}

// check checks what came of a question.
func (w *workers) check(thread, question string) {
	w.t.Helper()
	texts := w.thread(thread)
	seen := map[string]int{}
	for _, text := range texts {
		if _, task, ok := strings.Cut(text, "coder did "); ok {
			text = "coder did " + task
		}
		seen[text]++
	}
	for text, n := range seen {
		if n != 1 {
			w.t.Errorf("%d times %q", n, text)
		}
	}
	for n := range 3 {
		if report := fmt.Sprintf("coder did %s/%d", question, n); seen[report] != 1 {
			w.t.Errorf("%d times %q in %q", seen[report], report, texts)
		}
	}
	w.mu.Lock()
	run := w.runs[question]
	w.mu.Unlock()
	_, listed := httpCall(w.t, http.MethodGet, w.address+"/runs/"+run+"/workstreams", leadSecret, "", "")
	if strings.Count(listed, `"state":"completed"`) != 3 || strings.Count(listed, `"launch_id"`) != 3 {
		w.t.Error(listed)
	}
}
