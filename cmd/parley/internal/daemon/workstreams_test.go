package daemon_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/stream"
)

// delegating is a daemon whose agent lead takes each run and answers it later. Meanwhile it may launch workstreams, for
// which echo works, and which lead may do itself.
type delegating struct {
	*harness
	inputs chan leadInput
}

// otherSecret is the secret of the agent other, which works as helper does.
const otherSecret = "webhook-secret-of-another"

// leadInput is a request to the agent.
type leadInput struct {
	RunID    string                           `json:"run_id"`
	Messages []struct{ Role, Content string } `json:"messages"`

	token string // of the run
}

func openLead(t *testing.T, p plan) *delegating {
	t.Helper()
	return openLeadOf(t, p, 2)
}

// openLeadOf opens the agent lead with a bound of its workstreams.
func openLeadOf(t *testing.T, p plan, most int) *delegating {
	t.Helper()
	return openLeadShowing(t, p, most, "[answer]")
}

// openLeadShowing opens the agent lead, of whose runs people see some messages.
func openLeadShowing(t *testing.T, p plan, most int, show string) *delegating {
	t.Helper()
	l := &delegating{inputs: make(chan leadInput, 16)}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var input leadInput
		if !takesInput(t, w, r, &input) {
			return
		}
		input.token = r.Header.Get("X-Parley-Run-Token")
		w.WriteHeader(http.StatusAccepted)
		l.inputs <- input
	}))
	t.Cleanup(hook.Close)
	if p.files == nil {
		p.files = map[string]string{}
	}
	p.files["parley.yaml"] = `
listen: 127.0.0.1:0
shutdown: 30s
agents:
  - {id: helper, kind: webhook, url: "` + hook.URL + `", secret: ` + laterSecret + `, workstreams: {agents: [echo, helper, other], max: ` + strconv.Itoa(most) + `}, show: ` + show + `}
  - {id: other, kind: webhook, url: "` + hook.URL + `", secret: ` + otherSecret + `}
  - {id: echo, kind: echo}
` + p.main
	l.harness = open(t, p)
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
	h := openLead(t, plan{})
	h.mention("who is right?")
	asked := <-h.inputs
	id := h.launch(asked.RunID, `{"task":"Look it up.","agent":"echo","name":"the books"}`)
	h.reply(asked.RunID, "I have asked echo.")

	told := <-h.inputs
	want := "system: The task was: Look it up.\nWorkstream the books (launch_id " + id + ", agent echo) is completed. Its answer:\n\n"
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
	h := openLead(t, plan{})
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
	h := openLead(t, plan{})
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
	if got := h.call(http.MethodPost, of, `{"task":"a","agent":"helper"}`, http.StatusConflict); !strings.Contains(got, "workstreams.max of the agent helper is 2") {
		t.Error(got)
	}
	child := (<-h.inputs).RunID
	if got := h.call(http.MethodPost, "/runs/"+child+"/workstreams", `{"task":"a","agent":"echo"}`, http.StatusForbidden); !strings.Contains(got, "workstreams.depth of the agent helper is 1") {
		t.Error(got)
	}
	h.call(http.MethodPost, "/runs/0190a0e4-0000-7000-8000-000000000000/workstreams", `{"task":"a","agent":"echo"}`, http.StatusNotFound)
	h.call(http.MethodPost, of+"/0190a0e4-0000-7000-8000-000000000000/terminate", `{}`, http.StatusNotFound)
	if got := h.request(http.MethodPost, of, ownToken, "application/json", `{"task":"a","agent":"echo"}`).status; got != http.StatusNotFound {
		t.Errorf("a token of another workspace got %d", got)
	}
}

// childrenOf returns the workstreams of a run as the API lists them.
func (l *delegating) childrenOf(run string) []listedWorkstream {
	l.t.Helper()
	return decode[struct{ Workstreams []listedWorkstream }](l.t, l.call(http.MethodGet, "/runs/"+run+"/workstreams", "{}", http.StatusOK)).Workstreams
}

type listedWorkstream struct {
	State   string    `json:"state"`
	Phase   string    `json:"phase"`
	EndedAt time.Time `json:"ended_at"`
}

// count returns how many messages of an input contain words.
func (i *leadInput) count(words string) (n int) {
	for _, m := range i.Messages {
		n += strings.Count(m.Content, words)
	}
	return n
}

// TestAWorkstreamMissesItsDeadline checks that a child that does not answer ends at its deadline, that its run is
// stopped, and that its parent is told once.
func TestAWorkstreamMissesItsDeadline(t *testing.T) {
	t.Parallel()
	begun := time.Now().Truncate(time.Millisecond)
	h := openLead(t, plan{clock: &clock{at: begun}})
	h.mention("who is right?")
	asked := <-h.inputs
	h.launch(asked.RunID, `{"task":"Think.","agent":"helper","deadline_seconds":30}`)
	child := <-h.inputs
	h.reply(asked.RunID, "Wait.")
	h.posts(1)
	h.clock.advance(29 * time.Second)
	same(t, h.childrenOf(asked.RunID)[0].State, "running")
	h.clock.advance(time.Second)
	told := <-h.inputs
	same(t, told.count("was ended because its deadline passed"), 1)
	if ended := h.childrenOf(asked.RunID)[0]; ended.State != "timeout" || ended.EndedAt.Sub(begun) > 32*time.Second {
		t.Errorf("the child is %s since %s after its launch", ended.State, ended.EndedAt.Sub(begun))
	}
	h.reply(told.RunID, "Nobody knows.")
	h.posts(2)
	h.restart()
	h.call(http.MethodPost, "/api/v1/runs/"+child.RunID+"/reply", `{"content":"Late."}`, http.StatusGone)
	same(t, len(h.inputs), 0)
}

// TestAStopEndsWorkstreams checks that a person's stop in the parent's thread ends the children there, whether the
// run that launched them goes on or not. Before that, their status tells of them.
func TestAStopEndsWorkstreams(t *testing.T) {
	for name, ended := range map[string]bool{"during the run": false, "after the run": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openLead(t, plan{})
			question := h.mention("who is right?")
			asked := <-h.inputs
			h.launch(asked.RunID, `{"task":"Think.","agent":"other"}`)
			child := <-h.inputs
			posts := 0
			if ended {
				h.reply(asked.RunID, "Wait.")
				posts = len(h.posts(1))
			}
			for i, c := range []struct{ command, want string }{{"/status", "- other works for helper since "}, {"/stop", "Stopped."}} {
				m := h.newMessage("<@" + slacktest.BotUser + "> " + c.command)
				m.ThreadTS = question.TS
				h.slack.Put(slacktest.Post{Channel: m.Channel, User: m.User, Text: m.Text, TS: m.TS, ThreadTS: m.ThreadTS})
				h.accept(m.Mention())
				if got := h.private(i + 1).Text; !strings.Contains(got, c.want) {
					t.Errorf("%s: %q", c.command, got)
				}
			}
			for h.childrenOf(asked.RunID)[0].State != "canceled" && h.poll() {
			}
			got := h.request(http.MethodPost, "/api/v1/runs/"+child.RunID+"/reply", otherSecret, "application/json", `{"content":"Late."}`)
			same(t, []int{got.status, len(h.inputs), len(h.posts(posts))}, []int{http.StatusGone, 0, posts})
		})
	}
}

// TestAStopBelowOurPostEndsWorkstreams checks that a person's stop and status below a post with which a thread of ours begins mean the
// children of that thread: below the answer to a schedule, and below the announcement of a program's message.
func TestAStopBelowOurPostEndsWorkstreams(t *testing.T) {
	for name, ask := range map[string]func(h *delegating){
		"a schedule's answer": func(h *delegating) { h.changeSchedule("morning", "run") },
		"an announcement": func(h *delegating) {
			h.inject(http.StatusAccepted, "acme", "who is right?", `,"to":{"channel":"`+room+`"},"mentioned":true,"announce":true`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openLead(t, withInjectors(plan{acme: twoSchedules}, "acme", ""))
			ask(h)
			asked := <-h.inputs
			h.launch(asked.RunID, `{"task":"Think.","agent":"other"}`)
			child := <-h.inputs
			h.reply(asked.RunID, "Wait.")
			h.awaitText("Wait.", h.slackTexts)
			posts := h.slack.Posts()
			h.awaitMetric(sent, float64(len(posts))) // until a post is recorded, nobody knows that a command is below it
			for i, c := range []struct{ command, want string }{{"/status", "- other works for helper since "}, {"/stop", "Stopped."}, {"/stop", "nothing to stop"}} {
				m := h.newMessage("<@" + slacktest.BotUser + "> " + c.command)
				m.ThreadTS = posts[0].TS
				h.slack.Put(slacktest.Post{Channel: m.Channel, User: m.User, Text: m.Text, TS: m.TS, ThreadTS: m.ThreadTS})
				h.accept(m.Mention())
				if got := h.private(i + 1).Text; !strings.Contains(got, c.want) {
					t.Errorf("%s: %q", c.command, got)
				}
				for c.command == "/stop" && h.childrenOf(asked.RunID)[0].State != "canceled" && h.poll() {
				}
			}
			got := h.request(http.MethodPost, "/api/v1/runs/"+child.RunID+"/reply", otherSecret, "application/json", `{"content":"Late."}`)
			same(t, []int{got.status, len(h.inputs), len(h.slack.Posts())}, []int{http.StatusGone, 0, len(posts)})
		})
	}
}

// TestAWorkstreamIsPrivate checks that the agent of a child may report, and change nothing else of it, and that no
// client of the workspace reads or writes in its thread, unless it may list all threads.
func TestAWorkstreamIsPrivate(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.postWeb("who is right?")
	asked := <-h.inputs
	id := h.launch(asked.RunID, `{"task":"Think.","agent":"other"}`)
	child := <-h.inputs
	one := "/runs/" + asked.RunID + "/workstreams/" + id
	as := func(method, path, token, body string, status int) string {
		t.Helper()
		got := h.request(method, path, token, "application/json", body)
		if got.status != status {
			t.Errorf("%s %s: %d %s", method, path, got.status, got.body)
		}
		return got.body
	}
	as(http.MethodPost, one+"/progress", otherSecret, `{"phase":"synthesizing"}`, http.StatusAccepted)
	as(http.MethodPost, one+"/messages", otherSecret, `{"message":"Think of me."}`, http.StatusNotFound)
	as(http.MethodPost, one+"/steer", otherSecret, `{"command":"set_priority","text":"high"}`, http.StatusNotFound)
	as(http.MethodPost, one+"/terminate", otherSecret, `{}`, http.StatusNotFound)
	as(http.MethodPost, "/runs/"+asked.RunID+"/workstreams", otherSecret, `{"task":"a","agent":"echo"}`, http.StatusNotFound)
	same(t, h.childrenOf(asked.RunID)[0], listedWorkstream{State: "running", Phase: "synthesizing"})

	list := decode[struct {
		Threads []struct {
			ID  string `json:"thread_id"`
			Key string `json:"key"`
		}
	}](t, as(http.MethodGet, "/api/v1/workspaces/ours/threads", anyToken, "", http.StatusOK))
	thread := ""
	for _, known := range list.Threads {
		if known.Key == "workstream:"+id {
			thread = known.ID
		}
	}
	messages := "/api/v1/workspaces/ours/threads/" + thread + "/messages"
	as(http.MethodGet, messages, anyToken, "", http.StatusOK)
	as(http.MethodGet, messages, ownToken, "", http.StatusNotFound)
	as(http.MethodGet, "/api/v1/runs/"+child.RunID+"/events", anyToken, "", http.StatusOK)
	as(http.MethodGet, "/api/v1/runs/"+child.RunID+"/events", ownToken, "", http.StatusOK) // who reads the run above reads its messages there, too
	as(http.MethodPost, "/runs/"+child.RunID+"/signals", ownToken, `{"signal":"Stop"}`, http.StatusNotFound)
	as(http.MethodGet, "/api/v1/chat/threads/"+thread, anyToken, "", http.StatusNotFound)
	as(http.MethodPost, "/api/v1/chat/threads/"+thread+"/messages", anyToken, `{"content":"hi"}`, http.StatusNotFound)
	as(http.MethodPost, "/api/v1/workspaces/ours/messages", ownToken, `{"thread_id":"`+thread+`","content":"hi"}`, http.StatusBadRequest)
}

// TestWorkstreamsThatAnswerLater checks children whose agent takes their tasks and answers later, at once or not: each
// is a run with a second attempt.
func TestWorkstreamsThatAnswerLater(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.mention("who is right?")
	asked := <-h.inputs
	const children = 2
	for range children {
		h.launch(asked.RunID, `{"task":"Look it up.","agent":"helper"}`)
		task := <-h.inputs
		h.reply(task.RunID, "Found.")
	}
	h.reply(asked.RunID, "I have asked two.")
	for range children {
		told := <-h.inputs
		if !strings.HasSuffix(told.last(), "is completed. Its answer:\n\nFound.") {
			t.Errorf("the parent is told\n%s", told.last())
		}
		h.reply(told.RunID, "Thanks.")
	}
	h.posts(1 + children)
}

// TestSteeringAsksAgain checks that a child that cannot take directives during its run is asked again with them, so that none is lost,
// and that one about a pause asks for nothing.
func TestSteeringAsksAgain(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.mention("who is right?")
	asked := <-h.inputs
	one := "/runs/" + asked.RunID + "/workstreams/" + h.launch(asked.RunID, `{"task":"Look it up.","agent":"helper"}`)
	steer := func(body string) { h.call(http.MethodPost, one+"/steer", body, http.StatusAccepted) }
	first := <-h.inputs
	steer(`{"command":"add_constraint","text":"Be brief."}`)
	h.reply(first.RunID, "A long answer.")
	second := <-h.inputs
	same(t, second.last(), "user: [[helper]]: add_constraint: Be brief.")
	steer(`{"command":"pause_requested"}`)
	h.reply(second.RunID, "Short.")
	h.reply(asked.RunID, "Wait.")
	for _, want := range []string{"says:\n\nA long answer.", "is completed. Its answer:\n\nShort."} {
		told := <-h.inputs
		if !strings.HasSuffix(told.last(), want) {
			t.Errorf("the parent is told\n%s", told.last())
		}
		h.reply(told.RunID, "Thanks.")
	}
	h.posts(3)
	same(t, len(h.inputs), 0)
}

// TestATerminatedWorkstreamWorksNoMore checks that a message that waits is not worked on after the parent has terminated the child.
func TestATerminatedWorkstreamWorksNoMore(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.mention("who is right?")
	asked := <-h.inputs
	one := "/runs/" + asked.RunID + "/workstreams/" + h.launch(asked.RunID, `{"task":"Look it up.","agent":"helper"}`)
	<-h.inputs
	h.call(http.MethodPost, one+"/messages", `{"message":"And more."}`, http.StatusAccepted)
	h.call(http.MethodPost, one+"/terminate", `{}`, http.StatusAccepted)
	for h.childrenOf(asked.RunID)[0].State != "canceled" && h.poll() {
	}
	same(t, len(h.inputs), 0)
}

// TestStreamOfWorkstreams checks that the readers of a run get the messages of its workstreams with their ids, and
// that the end of a workstream ends no stream.
func TestStreamOfWorkstreams(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.postWeb("who is right?")
	asked := <-h.inputs
	path := "/runs/" + thread + "/" + asked.RunID
	lines := h.stream(path+"/stream?skipHistory=true", ownToken, "")
	next := func() (m stream.Message) {
		t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if m = decode[stream.Message](t, data); m.Type != stream.StreamingChunk {
					return m
				}
			}
		}
		return m
	}
	heard := func(kind stream.Type, workstream, words string) {
		t.Helper()
		if m := next(); m.Type != kind || m.Workstream != workstream || !strings.Contains(m.Text, words) {
			t.Errorf("heard %+v; want %s of %q with %q", m, kind, workstream, words)
		}
	}
	done := h.launch(asked.RunID, `{"task":"Look it up.","agent":"echo"}`)
	heard(stream.System, done, "Look it up.")
	heard(stream.Answer, done, "Look it up.")
	heard(stream.Complete, done, "Look it up.")
	ended := h.launch(asked.RunID, `{"task":"Think.","agent":"other"}`)
	<-h.inputs
	heard(stream.System, ended, "Think.")
	h.call(http.MethodPost, "/runs/"+asked.RunID+"/workstreams/"+ended+"/terminate", `{}`, http.StatusAccepted)
	heard(stream.Terminated, ended, "is canceled")
	h.reply(asked.RunID, "Both are.")
	heard(stream.Answer, "", "Both are.")
	heard(stream.Complete, "", "")
	if updates := h.request(http.MethodGet, path+"/updates", ownToken, "", "").body; strings.Count(updates, `"w":"`+done) != 3 {
		t.Errorf("the updates are %s", updates)
	}
}

// modelLead lets the model of the harness have echo work for it.
const modelLead = "workstreams: {agents: [echo], max: 4}"

// result returns the last result of a call in a request.
func (a *modelRequest) result() string {
	for _, m := range slices.Backward(a.messages) {
		if m.Role == "tool" {
			return m.Content
		}
	}
	return ""
}

// TestAModelHasOthersWork lets a model launch an interactive workstream from a question in Slack, talk with it, and
// end it. People see its answers alone, in the thread where they asked.
func TestAModelHasOthersWork(t *testing.T) {
	t.Parallel()
	h := open(t, plan{helper: modelLead})
	question := h.mention("who is right?")
	h.answerNext(callTool("I ask echo.", "launch_workstream", `{"task":"Say one.","agent":"echo","name":"books","interactive":true}`))
	asked := h.nextRequest()
	id := decode[struct {
		ID string `json:"launch_id"`
	}](t, asked.result()).ID
	h.answer(asked, callTool("", "launch_workstream", `{"task":"Say one.","agent":"nobody"}`))
	asked = h.nextRequest()
	if got := asked.result(); got != `{"error":"agent: must be one of [\"echo\"]"}` {
		t.Errorf("the result is %s", got)
	}
	var posted []string
	hears := func(asked *modelRequest, words string) *modelRequest { // a report that comes during the run is in it
		told := "Workstream books (launch_id " + id + ", agent echo) says:\n\n" + words
		if !strings.Contains(all(asked), told) {
			posted = append(posted, "Wait.")
			h.answer(asked, replyWith("Wait."))
			asked = h.nextRequest()
		}
		if !strings.Contains(all(asked), told) {
			t.Errorf("the parent is told\n%s", all(asked))
		}
		return asked
	}
	h.answer(hears(asked, "Say one."), callTool("", "message_workstream", `{"launch_id":"`+id+`","message":"Say two."}`))
	second := hears(h.nextRequest(), "Say two.")
	h.answer(second, callTool("", "terminate_workstream", `{"launch_id":"`+id+`"}`))
	h.answerNext(replyWith("Both are."))
	posted = append(posted, "Both are.")
	var texts []string
	for _, post := range h.posts(len(posted)) {
		texts = append(texts, post.Text)
		same(t, post.ThreadTS, question.TS)
	}
	same(t, texts, posted)
}

// all returns the texts of a request.
func all(asked *modelRequest) string {
	var b strings.Builder
	for _, m := range asked.messages {
		b.WriteString(m.Role + ": " + m.Content + "\n")
	}
	return b.String()
}

// TestManyWorkstreams checks that a node works on many workstreams: each task is asked and each result is reported once,
// and none is left. PARLEY_TEST_WORKSTREAMS is another number of them.
func TestManyWorkstreams(t *testing.T) {
	t.Parallel()
	many := 60
	if n, err := strconv.Atoi(os.Getenv("PARLEY_TEST_WORKSTREAMS")); err == nil {
		many = n
	}
	const each = 20
	h := openLeadOf(t, plan{}, each)
	begun := time.Now()
	asked, reported, answers := map[string]int{}, map[string]bool{}, 0
	answer := func(told leadInput, text string) {
		for _, m := range told.Messages {
			for _, report := range regexp.MustCompile(`launch_id (\S+), agent echo\) is completed`).FindAllStringSubmatch(m.Content, -1) {
				reported[report[1]] = true
			}
		}
		answers++
		h.reply(told.RunID, text)
	}
	for len(asked) < many/each {
		h.mention("who is right?")
		question := <-h.inputs
		for !strings.HasSuffix(question.last(), "who is right?") { // a report of an earlier question came first
			answer(question, "Noted.")
			question = <-h.inputs
		}
		run := question.RunID
		for range each {
			h.launch(run, `{"task":"Look it up.","agent":"echo"}`)
		}
		asked[run] = 0
		answer(question, "Wait.")
	}
	t.Logf("%d launched after %v", many, time.Since(begun))
	for len(reported) < many {
		answer(<-h.inputs, "Noted.") // reports that come during a run are a turn together
	}
	t.Logf("reported after %v", time.Since(begun))
	for run := range asked {
		for _, child := range h.childrenOf(run) {
			same(t, child.State, "completed")
			asked[run]++
		}
		same(t, asked[run], each)
	}
	h.posts(answers)
	h.awaitMetric(envelopesMetric("message", "stored", "workstream"), float64(2*many)) // each task and each report once
	if len(h.inputs) != 0 || answers > many+len(asked) {
		t.Errorf("%d answers, and %d more inputs", answers, len(h.inputs))
	}
}

// TestOperatorsSeeWorkstreams checks that a run and the life of its message show the run's workstreams, without words.
func TestOperatorsSeeWorkstreams(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.mention("who is right?")
	asked := <-h.inputs
	id := h.launch(asked.RunID, `{"task":"Think of me.","agent":"other","name":"the thinker"}`)
	<-h.inputs
	client := h.operate()
	run, err := client.Run(h.ctx, asked.RunID)
	if err != nil || len(run.Workstreams) != 1 || run.Workstreams[0].ThreadID == "" || run.Workstreams[0].String() != id+" of agent other: running, planning" {
		t.Errorf("%v %+v", err, run)
	}
	why, err := client.Why(h.ctx, asked.RunID)
	if err != nil || !slices.ContainsFunc(why.Steps, func(s operator.LifeStep) bool {
		return s.What == "workstream" && s.Detail == run.Workstreams[0].String()
	}) {
		t.Errorf("%v %+v", err, why.Steps)
	}
	if shown := fmt.Sprint(run.Workstreams, why.Steps); strings.Contains(shown, "hink") {
		t.Error(shown)
	}
}

// TestArtifactsOfARun checks that the files of a run are listed with links, and those of its workstreams among them.
func TestArtifactsOfARun(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.postWeb("who is right?", `"attachments":[{"name":"given.txt","mime_type":"text/plain","data":"aGk="}]`)
	asked := <-h.inputs
	answer := func(run, name string) {
		t.Helper()
		h.call(http.MethodPost, "/api/v1/runs/"+run+"/reply", `{"content":"Here.","files":[{"name":"`+name+`","mime_type":"text/plain","data":"aGkh"}]}`, http.StatusAccepted)
	}
	apart := h.launch(asked.RunID, `{"task":"Think.","agent":"helper","merge_child_artifacts":false}`)
	answer((<-h.inputs).RunID, "hidden.txt")
	child := h.launch(asked.RunID, `{"task":"Think.","agent":"helper"}`)
	answer((<-h.inputs).RunID, "found.txt")
	answer(asked.RunID, "own.txt")
	for slices.ContainsFunc(h.childrenOf(asked.RunID), func(w listedWorkstream) bool { return w.State != "completed" }) && h.poll() {
	}
	<-h.inputs // the report of a child, after the end of the run
	type file struct {
		Path string
		Name string
		Type string `json:"mime_type"`
		Size int64
		URL  string
	}
	got := h.request(http.MethodGet, "/api/v1/runs/"+asked.RunID+"/artifacts", ownToken, "", "")
	list := decode[struct{ Artifacts []file }](t, got.body).Artifacts
	for i, f := range list {
		content := "hi!"
		if f.Path == "files/given.txt" {
			content = "hi"
		}
		same(t, h.get(strings.TrimPrefix(f.URL, h.url)).body, content)
		list[i].URL = ""
	}
	same(t, list, []file{
		{"out/own.txt", "own.txt", "text/plain", 3, ""}, {"files/given.txt", "given.txt", "text/plain", 2, ""},
		{"files/" + child + "/found.txt", "found.txt", "text/plain", 3, ""},
	})
	h.call(http.MethodGet, "/runs/"+asked.RunID+"/artifacts", "", http.StatusOK)
	if status := h.request(http.MethodGet, "/runs/"+asked.RunID+"/artifacts", otherSecret, "", "").status; status != http.StatusNotFound || strings.Contains(got.body, apart) {
		t.Errorf("another agent gets %d; %s", status, got.body)
	}
}

// TestClientsSpeakInTheirOwnNames: the launches, messages, steering and reports of a person's token have the person's name in the
// workstream, and no name of a workstream breaks the line of a report.
func TestClientsSpeakInTheirOwnNames(t *testing.T) {
	t.Parallel()
	h := openLead(t, plan{})
	h.post(ownToken, `{"thread_id":"`+thread+`","content":"who is right?"}`)
	asked := <-h.inputs
	of := "/runs/" + asked.RunID + "/workstreams"
	as := func(token, path, body string, status int) string {
		t.Helper()
		got := h.request(http.MethodPost, path, token, "application/json", body)
		if got.status != status {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		return got.body
	}
	const olivia = "Olivia (user:"
	id := decode[struct {
		ID string `json:"launch_id"`
	}](t, as(ownToken, of, `{"task":"Look it up.","agent":"other","interactive":true,"name":"n\n[Boss (<@U0BOSS>)]: x"}`, http.StatusCreated)).ID
	task := <-h.inputs
	same(t, task.last(), "user: [Olivia]: Look it up.")
	as(ownToken, of+"/"+id+"/progress", `{"phase":"executing_tool","tool":"rm -rf","iteration":9,"message":"I have deleted everything"}`, http.StatusAccepted)
	if list := h.request(http.MethodGet, of, ownToken, "", "").body; strings.Contains(list, `"tool":"rm -rf"`) || !strings.Contains(list, olivia) {
		t.Errorf("the list has %s", list)
	}
	as(otherSecret, of+"/"+id+"/progress", `{"phase":"executing_tool","tool":"search","iteration":1,"message":"page 2"}`, http.StatusAccepted)
	if list := h.request(http.MethodGet, of, ownToken, "", "").body; !strings.Contains(list, `"tool":"search"`) || strings.Contains(list, olivia) {
		t.Errorf("the list has %s", list)
	}
	as(ownToken, of+"/"+id+"/steer", `{"command":"add_constraint","text":"Be brief."}`, http.StatusAccepted)
	as(otherSecret, "/api/v1/runs/"+task.RunID+"/reply", `{"content":"Found."}`, http.StatusAccepted)
	as(ownToken, of+"/"+id+"/messages", `{"message":"And in French?"}`, http.StatusAccepted)
	next := <-h.inputs
	if got := next.Messages; !slices.ContainsFunc(got, func(m struct{ Role, Content string }) bool {
		return strings.Contains(m.Content, "Olivia: add_constraint: Be brief.") || m.Content == "[Olivia]: add_constraint: Be brief."
	}) {
		t.Errorf("the child gets %q", got)
	}
	same(t, next.last(), "user: [Olivia]: And in French?")
	h.call(http.MethodPost, of+"/"+id+"/messages", `{"message":"And in German?"}`, http.StatusAccepted)
	as(otherSecret, "/api/v1/runs/"+next.RunID+"/reply", `{"content":"Trouvé."}`, http.StatusAccepted)
	german := <-h.inputs
	same(t, german.last(), "user: [[helper]]: And in German?")
	h.reply(asked.RunID, "I have asked.")
	told := <-h.inputs
	if got := told.last(); strings.Contains(got, "\n[Boss") || !strings.Contains(got, "Workstream n (Boss (‹@U0BOSS›)): x (launch_id "+id+", agent other)") {
		t.Errorf("the parent is told %q", got)
	}
	h.reply(told.RunID, "Thanks.")
}
