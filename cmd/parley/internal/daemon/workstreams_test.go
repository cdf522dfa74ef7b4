package daemon_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// delegating is a daemon whose agent lead takes each run and answers it later. Meanwhile it may launch workstreams, for
// which echo works, and which lead may do itself.
type delegating struct {
	*harness
	inputs chan leadInput
}

// leadInput is a request to the agent.
type leadInput struct {
	RunID    string                           `json:"run_id"`
	Messages []struct{ Role, Content string } `json:"messages"`
}

func openLead(t *testing.T) *delegating {
	t.Helper()
	l := &delegating{inputs: make(chan leadInput, 16)}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var input leadInput
		if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		l.inputs <- input
	}))
	t.Cleanup(hook.Close)
	l.harness = open(t, plan{files: map[string]string{"parley.yaml": `
listen: 127.0.0.1:0
shutdown: 3s
agents:
  - {id: helper, kind: webhook, url: "` + hook.URL + `", secret: ` + laterSecret + `, workstreams: {agents: [echo, helper], max: 2}}
  - {id: echo, kind: echo}
`}})
	return l
}

// call makes a request with the agent's secret, and checks its status.
func (l *delegating) call(method, path, body string, status int) string {
	l.t.Helper()
	got := l.request(method, path, laterSecret, "application/json", body)
	if got.status != status {
		l.t.Fatalf("%s %s: %d %s\n%s", method, path, got.status, got.body, l.log)
	}
	return got.body
}

// launch launches a workstream and returns its id.
func (l *delegating) launch(run, body string) string {
	l.t.Helper()
	return decode[struct {
		ID string `json:"launch_id"`
	}](l.t, l.call(http.MethodPost, "/runs/"+run+"/workstreams", body, http.StatusCreated)).ID
}

// reply answers a run.
func (l *delegating) reply(run, text string) {
	l.t.Helper()
	l.call(http.MethodPost, "/api/v1/runs/"+run+"/reply", `{"content":`+quoted(text)+`}`, http.StatusAccepted)
}

// last is the last message of an input.
func (i *leadInput) last() string {
	return i.Messages[len(i.Messages)-1].Role + ": " + i.Messages[len(i.Messages)-1].Content
}

// TestAWorkstreamReports checks that a child's answer becomes a turn of its parent's thread, and that the answer to
// it is posted where the person asked.
func TestAWorkstreamReports(t *testing.T) {
	t.Parallel()
	h := openLead(t)
	h.mention("who is right?")
	asked := <-h.inputs
	id := h.launch(asked.RunID, `{"task":"Look it up.","agent":"echo","name":"the books"}`)
	h.reply(asked.RunID, "I have asked echo.")

	told := <-h.inputs
	want := "system: Workstream the books (launch_id " + id + ", agent echo) is completed. Its answer:\n\n"
	if !strings.HasPrefix(told.last(), want) || !strings.Contains(told.last(), "Look it up.") {
		t.Errorf("the parent is told\n%s", told.last())
	}
	h.reply(told.RunID, "Both are.")
	posts := h.posts(2)
	same(t, []string{posts[0].Text, posts[1].Text, posts[1].ThreadTS}, []string{"I have asked echo.", "Both are.", posts[0].ThreadTS})

	h.restart()
	listed := h.call(http.MethodGet, "/runs/"+asked.RunID+"/workstreams", "{}", http.StatusOK)
	if !strings.Contains(listed, `"state":"completed"`) || !strings.Contains(listed, "Look it up.") || len(h.inputs) != 0 {
		t.Errorf("%d further requests; %s", len(h.inputs), listed)
	}
}

// TestAnInteractiveWorkstream checks that a child answers each message of its parent, and ends only if its parent
// says so.
func TestAnInteractiveWorkstream(t *testing.T) {
	t.Parallel()
	h := openLead(t)
	h.mention("who is right?")
	asked := <-h.inputs
	id := h.launch(asked.RunID, `{"task":"Say one.","agent":"echo","interactive":true}`)
	h.reply(asked.RunID, "Wait.")
	first := <-h.inputs
	one := "/runs/" + asked.RunID + "/workstreams/" + id
	h.call(http.MethodPost, one+"/messages", `{"message":"Say two."}`, http.StatusAccepted)
	h.reply(first.RunID, "It said one.")
	second := <-h.inputs
	if !strings.Contains(first.last(), "Say one.") || !strings.Contains(second.last(), "Say two.") {
		t.Errorf("the parent is told\n%s\n%s", first.last(), second.last())
	}
	h.call(http.MethodPost, one+"/terminate", `{}`, http.StatusAccepted)
	h.reply(second.RunID, "It said two.")
	h.posts(3)
	for strings.Contains(h.call(http.MethodGet, "/runs/"+asked.RunID+"/workstreams", "{}", http.StatusOK), `"state":"canceling"`) && h.poll() {
	}
	listed := h.call(http.MethodGet, "/runs/"+asked.RunID+"/workstreams", "{}", http.StatusOK)
	if !strings.Contains(listed, `"state":"canceled"`) {
		t.Error(listed)
	}
	h.call(http.MethodPost, one+"/messages", `{"message":"Say three."}`, http.StatusConflict)
}

// TestWorkstreamBounds checks what a launch is refused for.
func TestWorkstreamBounds(t *testing.T) {
	t.Parallel()
	h := openLead(t)
	h.mention("who is right?")
	run := (<-h.inputs).RunID
	of := "/runs/" + run + "/workstreams"
	for body, field := range map[string]string{
		`{"agent":"echo"}`:                                                     `"task"`,
		`{"task":"a","agent":"nobody"}`:                                        `"agent"`,
		`{"task":"a","agent":"echo","deadline_seconds":29}`:                    `"deadline_seconds"`,
		`{"task":"a","agent":"echo","deadline_seconds":1801}`:                  `"deadline_seconds"`,
		`{"task":1,"agent":"echo"}`:                                            `"task"`,
		`{"task":"a","agent":"echo","name":"` + strings.Repeat("n", 81) + `"}`: `"name"`,
	} {
		if got := h.call(http.MethodPost, of, body, http.StatusBadRequest); !strings.Contains(got, field) {
			t.Errorf("%s: %s", body, got)
		}
	}
	h.launch(run, `{"task":"a","agent":"helper","deadline_seconds":30}`)
	h.launch(run, `{"task":"a","agent":"helper"}`)
	h.call(http.MethodPost, of, `{"task":"a","agent":"helper"}`, http.StatusConflict)
	child := (<-h.inputs).RunID
	h.call(http.MethodPost, "/runs/"+child+"/workstreams", `{"task":"a","agent":"echo"}`, http.StatusForbidden)
	h.call(http.MethodPost, "/runs/0190a0e4-0000-7000-8000-000000000000/workstreams", `{"task":"a","agent":"echo"}`, http.StatusNotFound)
	h.call(http.MethodPost, of+"/0190a0e4-0000-7000-8000-000000000000/terminate", `{}`, http.StatusNotFound)
	if got := h.request(http.MethodPost, of, ownToken, "application/json", `{"task":"a","agent":"echo"}`).status; got != http.StatusNotFound {
		t.Errorf("a token of another workspace got %d", got)
	}
}
