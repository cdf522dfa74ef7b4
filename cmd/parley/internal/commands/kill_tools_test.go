package commands

import (
	"encoding/json"
	"fmt"
	"maps"
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
// answered the message, lead terminates it. Each answer of lead repeats the results that were
// reported in its turn. coder answers each task but the second of a question, at which it works until it is
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
	reportText   = regexp.MustCompile(`Workstream coder \(launch_id [0-9a-f-]{36}, agent coder\) (is completed\. Its answer|says):\n\ncoder did \w+ \d+/\d`)
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

// lead answers as lead. Its turn has the messages since its last answer.
func (m *team) lead(run string, asked *teamRequest) (text string, calls []toolCall) {
	question, steps, told, ids, reports := "", 0, "", []string(nil), ""
	for _, said := range asked.Messages {
		if found := questionText.FindStringSubmatch(said.Content); found != nil && said.Role == "user" {
			question, ids = found[1], nil
		}
		switch {
		case said.Role == "assistant" && len(said.ToolCalls) > 0:
			steps++
		case said.Role == "assistant":
			question, steps, told, reports = "", 0, "", ""
		case said.Role == "tool":
			for _, id := range launchIDs.FindAllStringSubmatch(said.Content, -1) {
				ids = append(ids, id[1])
			}
		case said.Role == "system":
			if found := sayingID.FindStringSubmatch(said.Content); found != nil {
				told = found[1]
			}
			for _, report := range reportText.FindAllString(said.Content, -1) {
				reports += reported + onOneLine(report)
			}
		}
	}
	ends := []toolCall{{"terminate_workstream", map[string]any{"launch_id": told}}}
	if question == "" { // the turn is about reports
		if told != "" && steps == 0 {
			return "", ends
		}
		return "noted " + run + reports, nil
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
	return "lead answers question " + question + reports, nil
}

// reported begins a report in an answer of lead.
const reported = "\n\nReported: "

// onOneLine returns a text with a space for each break of a line.
func onOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// nodes are daemons with one store, each with its address.
type nodes struct {
	t       *testing.T
	dirs    []string
	daemons []*process
	at      []string
}

// startNodes starts daemons whose agents are the team, with the workspace of a chat.
func startNodes(t *testing.T, m *team, n int, workspace string) *nodes {
	c := &nodes{t: t, daemons: make([]*process, n), at: make([]string, n)}
	store := ""
	if n > 1 {
		store = "store: " + postgrestest.URL(t) + "\n"
	}
	for i := range n {
		dir := t.TempDir()
		write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\n"+store+`agents:
  - {id: lead, kind: openai, model: m, base_url: "`+m.URL+`/lead/v1", workstreams: {agents: [coder], max: 3}, show: [workstream]}
  - {id: coder, kind: openai, model: m, base_url: "`+m.URL+`/coder/v1"}
`)
		write(t, dir, "workspaces/ours.yaml", "id: ours\nagent: lead\nturns: {coalesce: 0s}\n"+workspace)
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

var (
	anyID     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
	wantTexts = map[string]int{
		"question Q": 1, "lead answers question Q": 1,
		"Workstream coder (launch_id ID, agent coder) is completed. Its answer: coder did task Q/0": 1,
		"Workstream coder (launch_id ID, agent coder) says: coder did task Q/2":                     1,
		"Workstream coder (launch_id ID, agent coder) says: coder did more Q/2":                     1,
	}
)

// outcome is the result of a question: how often its thread has each text. The answers of lead to reports keep the id of their run.
type outcome map[string]int

// outcome returns the result of a question.
func (c *nodes) outcome(m *team, in medium, thread, question string) outcome {
	c.t.Helper()
	m.mu.Lock()
	run := m.runs[question]
	m.mu.Unlock()
	o := outcome{}
	for _, text := range in.said(c, thread, run) {
		if text = onOneLine(text); !strings.HasPrefix(text, "noted ") {
			text = strings.ReplaceAll(anyID.ReplaceAllString(text, "ID"), question, "Q")
		}
		o[text]++
	}
	return o
}

// isWhole reports whether the thread has each wanted text often enough.
func (o outcome) isWhole(wants map[string]int) bool {
	for text, n := range wants {
		if o[text] < n {
			return false
		}
	}
	return true
}

// isMore reports whether the thread has a text too often. A note that is not wanted may be there once.
func (o outcome) isMore(wants map[string]int) bool {
	for text, n := range o {
		if want, ok := wants[text]; n > want && (ok || n > 1 || !strings.HasPrefix(text, "noted ")) {
			return true
		}
	}
	return false
}

// TestKilledWithTools kills a daemon at each request to the models of a question, ten times for one daemon and for two, over HTTP and
// in Slack: the agent's calls of tools are made once, each task is asked once, each report is in the thread once, and no workstream is
// left. In Slack each question has one state post.
func TestKilledWithTools(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) medium{"http": func(*testing.T) medium { return webChat{} }, "slack": startSlackChat} {
		for _, n := range []int{1, 2} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				t.Parallel()
				killWithTools(t, open(t), n)
			})
		}
	}
}

// killWithTools is TestKilledWithTools with n daemons.
func killWithTools(t *testing.T, in medium, n int) {
	kills := 10
	if testing.Short() {
		kills = 2
	}
	m := startTeam(t)
	c := startNodes(t, m, n, in.config())
	wants := in.wants()
	maps.Copy(wants, wantTexts)
	threads := map[string]string{} // of the questions
	for k := range kills {
		question := fmt.Sprint(100 + k)
		m.mu.Lock()
		m.left = 1 + k%8 // a question takes nine requests at least
		m.mu.Unlock()
		threads[question] = in.ask(t, c.at[k/n%n], k, "question "+question)
		<-m.kill
		c.kill(k % n)
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
			if got := c.outcome(m, in, threads[question], question); got.isWhole(wants) {
				break
			}
		}
	}
	for question, thread := range threads {
		if got := c.outcome(m, in, thread, question); !got.isWhole(wants) || got.isMore(wants) {
			t.Errorf("question %s has come to %v", question, got)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	asked := 0
	for task, runs := range m.tasks {
		if len(runs) != 1 {
			t.Errorf("coder was asked for %s by the runs %q", task, runs)
		}
		if !strings.HasSuffix(task, "/1") { // a task /1 may be terminated before coder begins it
			asked++
		}
	}
	if asked != 3*kills {
		t.Errorf("coder was asked for %d tasks", asked)
	}
}
