package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/ingest/journal/postgres/postgrestest"
)

// team is a model's server for the agents lead and coder. For each question, lead launches three workstreams, steers the
// second, sends a message to the third, which is interactive, terminates the second, lists them, and answers. When the third has
// answered the message, lead terminates it. coder answers each task but the second of a question, at which it works until it is
// stopped.
type team struct {
	*httptest.Server
	t     *testing.T
	mu    sync.Mutex
	tasks map[string][]string // the runs that asked coder for a task or message
	runs  map[string]string   // the run of lead that has launched the workstreams of a question
	left  int                 // requests until a daemon shall die
	kill  chan struct{}       // gets one before the last of them
}

// teamRequest is a request of the daemon to the model.
type teamRequest struct {
	Messages []struct {
		Role, Content string
		ToolCalls     []struct{} `json:"tool_calls"`
	}
	Tools []struct{ Function struct{ Name string } }
}

func startTeam(t *testing.T) *team {
	m := &team{t: t, tasks: map[string][]string{}, runs: map[string]string{}, kill: make(chan struct{}, 1)}
	m.Server = httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(m.Close)
	return m
}

func (m *team) answer(w http.ResponseWriter, r *http.Request) {
	var asked teamRequest
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Messages) == 0 {
		return // the daemon died during the request
	}
	m.mu.Lock()
	if m.left--; m.left == 0 {
		m.kill <- struct{}{}
	}
	m.mu.Unlock()
	run := r.Header.Get("Idempotency-Key")
	if strings.HasPrefix(r.URL.Path, "/coder") {
		m.code(w, r, run, &asked)
		return
	}
	text, calls := m.lead(run, &asked)
	sayCalls(w, text, calls...)
}

// sayCalls writes an answer with calls.
func sayCalls(w http.ResponseWriter, text string, calls ...toolCall) {
	delta := map[string]any{"content": text}
	for i, c := range calls {
		arguments, _ := json.Marshal(c.arguments) // strings and numbers always encode
		delta["tool_calls"] = append(append([]any{}, asList(delta["tool_calls"])...),
			map[string]any{"index": i, "id": "call", "function": map[string]string{"name": c.name, "arguments": string(arguments)}})
	}
	chunk, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"delta": delta, "finish_reason": "stop"}}})
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", chunk)
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

type toolCall struct {
	name      string
	arguments map[string]any
}

var (
	questionText = regexp.MustCompile(`question (\d+)`)
	taskText     = regexp.MustCompile(`(task|more) \d+/\d`)
	launchIDs    = regexp.MustCompile(`"launch_id":"([0-9a-f-]{36})"`)
	sayingID     = regexp.MustCompile(`\(launch_id ([0-9a-f-]{36}), agent coder\) says:\n\ncoder did more`)
)

// code answers as coder.
func (m *team) code(w http.ResponseWriter, r *http.Request, run string, asked *teamRequest) {
	task := ""
	for _, said := range asked.Messages {
		if found := taskText.FindString(said.Content); found != "" && said.Role == "user" {
			task = found
		}
	}
	m.mu.Lock()
	if !slices.Contains(m.tasks[task], run) {
		m.tasks[task] = append(m.tasks[task], run)
	}
	m.mu.Unlock()
	if strings.HasSuffix(task, "/1") {
		<-r.Context().Done()
		return
	}
	sayCalls(w, "coder did "+task)
}

// lead answers as lead. Its turn is what was said since its last answer.
func (m *team) lead(run string, asked *teamRequest) (text string, calls []toolCall) {
	question, steps, told, ids := "", 0, "", []string(nil)
	for _, said := range asked.Messages {
		if found := questionText.FindStringSubmatch(said.Content); found != nil && said.Role == "user" {
			question, ids = found[1], nil
		}
		switch {
		case said.Role == "assistant" && len(said.ToolCalls) > 0:
			steps++
		case said.Role == "assistant":
			question, steps, told = "", 0, ""
		case said.Role == "tool":
			for _, id := range launchIDs.FindAllStringSubmatch(said.Content, -1) {
				ids = append(ids, id[1])
			}
		case said.Role == "system":
			if found := sayingID.FindStringSubmatch(said.Content); found != nil {
				told = found[1]
			}
		}
	}
	ends := []toolCall{{"terminate_workstream", map[string]any{"launch_id": told}}}
	if question == "" { // the turn is about reports
		if told != "" && steps == 0 {
			return "", ends
		}
		return "noted " + run, nil
	}
	switch steps {
	case 0:
		m.mu.Lock()
		m.runs[question] = run
		m.mu.Unlock()
		for n := range 3 {
			calls = append(calls, toolCall{"launch_workstream", map[string]any{"agent": "coder", "task": fmt.Sprintf("task %s/%d", question, n), "interactive": n == 2}})
		}
		return "I ask coder.", calls
	case 1:
		return "", []toolCall{
			{"steer_workstream", map[string]any{"launch_id": ids[1], "command": "add_instruction", "text": "Be quick."}},
			{"message_workstream", map[string]any{"launch_id": ids[2], "message": "more " + question + "/2"}},
		}
	case 2:
		return "", []toolCall{{"terminate_workstream", map[string]any{"launch_id": ids[1]}}, {"list_workstreams", map[string]any{}}}
	case 3:
		if told != "" { // the third has answered already
			return "", ends
		}
	}
	return "lead answers question " + question, nil
}

// nodes are daemons with one store, each with its address.
type nodes struct {
	t       *testing.T
	dirs    []string
	daemons []*process
	at      []string
}

// startNodes starts daemons whose agents are the team.
func startNodes(t *testing.T, m *team, n int) *nodes {
	c := &nodes{t: t, daemons: make([]*process, n), at: make([]string, n)}
	store := ""
	if n > 1 {
		store = "store: " + postgrestest.URL(t) + "\n"
	}
	for i := range n {
		dir := t.TempDir()
		write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\n"+store+`agents:
  - {id: lead, kind: openai, model: m, base_url: "`+m.URL+`/lead/v1", workstreams: {agents: [coder], max: 3}}
  - {id: coder, kind: openai, model: m, base_url: "`+m.URL+`/coder/v1"}
`)
		write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: lead\nturns: {coalesce: 0s}\nweb: {tokens: [{id: a, token: "+webToken+", name: c}]}\n")
		c.dirs = append(c.dirs, dir)
		c.start(i)
	}
	return c
}

func (c *nodes) start(i int) {
	c.daemons[i] = start(c.t, c.dirs[i], os.Args[0], "run")
	c.at[i] = c.daemons[i].address()
}

// kill kills a daemon and starts it again.
func (c *nodes) kill(i int) {
	c.t.Helper()
	if err := c.daemons[i].cmd.Process.Kill(); err != nil {
		c.t.Fatal(err)
	}
	_ = c.daemons[i].cmd.Wait() // killed by the test
	c.start(i)
}

// get returns the JSON at a path. A busy store is asked again, as its answer says.
func (c *nodes) get(path string, into any) {
	c.t.Helper()
	for {
		status, raw := httpCall(c.t, http.MethodGet, c.at[0]+path, webToken, "", "")
		switch {
		case status == http.StatusServiceUnavailable && c.t.Context().Err() == nil:
			<-time.After(100 * time.Millisecond)
		case status != http.StatusOK || json.Unmarshal([]byte(raw), into) != nil:
			c.t.Fatalf("%s: %d %s", path, status, raw)
		default:
			return
		}
	}
}

// outcome is what a question has come to.
type outcome struct {
	Texts  map[string]int // in the thread, with ids and runs left out
	States []string       // of the workstreams, in the order of their launches
}

var (
	anyID     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	wantTexts = []string{
		"question Q", "lead answers question Q",
		"Workstream coder (launch_id ID, agent coder) is completed. Its answer:\n\ncoder did task Q/0",
		"Workstream coder (launch_id ID, agent coder) is canceled.",
		"Workstream coder (launch_id ID, agent coder) says:\n\ncoder did task Q/2",
		"Workstream coder (launch_id ID, agent coder) says:\n\ncoder did more Q/2",
	}
)

// outcome returns what a question has come to.
func (c *nodes) outcome(m *team, thread, question string) outcome {
	c.t.Helper()
	var list struct{ Messages []struct{ Content string } }
	c.get("/api/v1/workspaces/ours/threads/"+thread+"/messages?limit=200", &list)
	o := outcome{Texts: map[string]int{}}
	for _, said := range list.Messages {
		text := strings.ReplaceAll(anyID.ReplaceAllString(said.Content, "ID"), question, "Q")
		if !strings.HasPrefix(text, "noted ") {
			o.Texts[text]++
		}
	}
	m.mu.Lock()
	run := m.runs[question]
	m.mu.Unlock()
	if run == "" {
		return o
	}
	var children struct{ Workstreams []struct{ State string } }
	c.get("/runs/"+run+"/workstreams", &children)
	for _, child := range children.Workstreams {
		o.States = append(o.States, child.State)
	}
	return o
}

// isWhole reports whether the question has come to its end.
func (o *outcome) isWhole() bool {
	for _, text := range wantTexts {
		if o.Texts[text] == 0 {
			return false
		}
	}
	return o.Texts[wantTexts[3]] >= 2 && slices.Equal(o.States, []string{"completed", "canceled", "canceled"})
}

// TestKilledWithTools kills a daemon at each request to the models of a question, ten times for one daemon and for two: the
// agent's calls of tools are made once, each task is asked once, each report is in the thread once, and no workstream is left.
func TestKilledWithTools(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			kills := 10
			if testing.Short() {
				kills = 2
			}
			m := startTeam(t)
			c := startNodes(t, m, n)
			for k := range kills {
				question, thread := fmt.Sprint(100+k), fmt.Sprintf("6ba7b81%d-9dad-41d1-80b4-00c04fd430c8", k)
				m.mu.Lock()
				m.left = 1 + k%8 // a question takes nine requests at least
				m.mu.Unlock()
				body := fmt.Sprintf(`{"thread_id":%q,"content":"question %s"}`, thread, question)
				if status, raw := httpCall(t, http.MethodPost, c.at[0]+"/api/v1/workspaces/ours/messages", webToken, body, ""); status != http.StatusAccepted {
					t.Fatal(status, raw)
				}
				<-m.kill
				c.kill(k % n)
				var got outcome
				for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
					if got = c.outcome(m, thread, question); got.isWhole() || time.Now().After(deadline) {
						break
					}
				}
				for i, text := range wantTexts {
					want := 1
					if i == 3 {
						want = 2
					}
					if got.Texts[text] != want {
						t.Errorf("kill %d: %d times %q of %v; %v", k, got.Texts[text], text, got.Texts, got.States)
					}
				}
				if len(got.Texts) != len(wantTexts) || !got.isWhole() {
					t.Errorf("kill %d: %v %v", k, got.Texts, got.States)
				}
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			asked := 0
			for task, runs := range m.tasks {
				if len(runs) != 1 {
					t.Errorf("coder was asked for %s by the runs %q", task, runs)
				}
				if !strings.HasSuffix(task, "/1") { // which may be terminated before it is asked
					asked++
				}
			}
			if asked != 3*kills {
				t.Errorf("coder was asked for %d tasks", asked)
			}
		})
	}
}
