package daemon_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/operator"
)

// pay is the update with which an agent asks for an approval.
const pay = `{"t":9,"m":"Pay 9000?","d":{"approval":true,"ux":{"options":[{"id":"yes","label":"Approve"},{"id":"no","label":"Reject"}]}}}`

// ask ends a run with a question of the agent helper.
func (l *delegating) ask(run, update string) {
	l.t.Helper()
	l.call(http.MethodPost, "/runs/"+run+"/updates", update, http.StatusAccepted)
}

// open waits for the open question with some words, and returns its run.
func (l *delegating) open(words string) string {
	l.t.Helper()
	for {
		list, err := l.operate().Questions(l.ctx, nil)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, q := range list.Items {
			if strings.Contains(q.Text, words) {
				return q.Run
			}
		}
		if !l.poll() {
			l.t.Fatalf("no question is open\n%s", l.log)
		}
	}
}

// TestAReportWaitsWhilePeopleAreAsked: neither the end of a workstream nor a tick of a schedule answers an approval or takes it
// away. Each has a run after the answer, also after a restart.
func TestAReportWaitsWhilePeopleAreAsked(t *testing.T) {
	t.Parallel()
	l := openLead(t, plan{})
	l.mention("pay them")
	asked := <-l.inputs
	l.launch(asked.RunID, `{"task":"Look it up.","agent":"other","name":"the books"}`)
	child := <-l.inputs
	l.ask(asked.RunID, pay)
	run := l.open("Pay 9000?")
	if got := l.request(http.MethodPost, "/api/v1/runs/"+child.RunID+"/reply", otherSecret, "application/json", `{"content":"Approve"}`); got.status != http.StatusAccepted {
		t.Fatal(got)
	}
	for !strings.Contains(l.call(http.MethodGet, "/runs/"+asked.RunID+"/workstreams", "{}", http.StatusOK), `"phase":"done"`) && l.poll() {
	}
	l.restart()
	same(t, l.open("Pay 9000?"), run)
	if len(l.inputs) != 0 {
		t.Fatalf("the agent was asked: %+v", <-l.inputs)
	}
	if made, err := l.operate().Answer(l.ctx, run, operator.Answer{Option: "no"}); err != nil || made.State != "answered" {
		t.Fatalf("%+v %v", made, err)
	}
	answered := <-l.inputs
	if got := answered.last(); !strings.Contains(got, "Reject") {
		t.Errorf("the answer's run has %q", got)
	}
	l.reply(answered.RunID, "I pay nothing.")
	told := <-l.inputs
	if got := told.last(); !strings.HasPrefix(got, "system: ") || !strings.Contains(got, "Workstream the books") {
		t.Errorf("the report's run has %q", got)
	}
	l.reply(told.RunID, "The books are right.")
	posts := l.posts(3)
	same(t, []string{posts[1].Text, posts[2].Text}, []string{"I pay nothing.", "The books are right."})
}

// TestAnApprovalOfAWorkstream: its parent does not answer it, and an approver's answer reaches the agent that asked.
func TestAnApprovalOfAWorkstream(t *testing.T) {
	t.Parallel()
	l := openLead(t, plan{})
	l.mention("pay them")
	asked := <-l.inputs
	id := l.launch(asked.RunID, `{"task":"Pay them.","agent":"helper"}`)
	child := <-l.inputs
	l.ask(child.RunID, pay)
	run := l.open("Pay 9000?")
	l.call(http.MethodPost, "/runs/"+asked.RunID+"/workstreams/"+id+"/messages", `{"message":"Approve"}`, http.StatusAccepted)
	l.call(http.MethodPost, "/runs/"+asked.RunID+"/workstreams/"+id+"/steer", `{"command":"add_instruction","text":"Approve"}`, http.StatusAccepted)
	same(t, l.open("Pay 9000?"), run)
	made, err := l.operate().Answer(l.ctx, run, operator.Answer{Option: "yes"})
	if err != nil || made.State != "answered" {
		t.Fatalf("%+v %v", made, err)
	}
	answered := <-l.inputs
	if got := answered.last(); !strings.Contains(got, "Approve") || strings.Contains(got, "add_instruction") || !strings.Contains(got, "local") {
		t.Errorf("the answer's run has %q", got)
	}
	_, err = l.operate().Answer(l.ctx, run, operator.Answer{Option: "no"})
	if e, ok := errors.AsType[*operator.Error](err); !ok || e.Status != http.StatusConflict {
		t.Errorf("%v", err)
	}
}

// TestAClientPressesWhatStandsThere: a press by a client of the HTTP API is one of a button of a card in its thread, and one that only
// approvers may press needs one of them.
func TestAClientPressesWhatStandsThere(t *testing.T) {
	t.Parallel()
	c := openCarded(t, slacktest.Options{}, nil)
	post := func(thread, action string) answer {
		return c.request(http.MethodPost, "/api/v1/workspaces/ours/messages", ownToken, "application/json",
			`{"thread_id":"`+thread+`","content":"Press","metadata":{"action":`+action+`}}`)
	}
	const thread = "550e8400-e29b-41d4-a716-446655440077"
	first := c.request(http.MethodPost, "/api/v1/workspaces/ours/messages", ownToken, "application/json", `{"thread_id":"`+thread+`","content":"a room?"}`)
	if first.status != http.StatusAccepted {
		t.Fatal(first)
	}
	<-c.asked
	read := func() string {
		return c.request(http.MethodGet, "/api/v1/workspaces/ours/threads/"+thread+"/messages", ownToken, "", "").body
	}
	for !strings.Contains(read(), "uiSchema") {
		if !c.poll() {
			t.Fatalf("no card is stored\n%s", c.log)
		}
	}
	for _, action := range []string{`{"id":"pay"}`, `{"id":"book","value":{"room":8}}`, `{"id":"book"}`, `{"id":"other"}`, `"book"`} {
		if got := post(thread, action); got.status != http.StatusForbidden || !strings.Contains(got.body, "metadata.action") {
			t.Errorf("%s: %+v", action, got)
		}
	}
	if got := post("550e8400-e29b-41d4-a716-446655440078", `{"id":"book","value":{"room":7}}`); got.status != http.StatusForbidden {
		t.Errorf("in another thread: %+v", got)
	}
	got := post(thread, `{"value":{"room":7},"id":"book"}`)
	if got.status != http.StatusAccepted || !strings.Contains(got.body, `"trigger":"run"`) {
		t.Fatalf("%+v", got)
	}
	pressed := <-c.asked
	var action struct{ ID string }
	if err := json.Unmarshal(pressed.Metadata.Action, &action); err != nil || action.ID != "book" || len(c.asked) != 0 {
		t.Errorf("%+v %v", pressed, err)
	}
}

// TestAnAgentThatGoesOnByItself: reports that lead to further workstreams end at the loop guard, and people are told once.
func TestAnAgentThatGoesOnByItself(t *testing.T) {
	t.Parallel()
	l := openLead(t, plan{acme: "policy: {loop_guard: {runs: 3, per: 1h}}"})
	l.mention("begin")
	for range 4 {
		asked := <-l.inputs
		l.launch(asked.RunID, `{"task":"Go on.","agent":"echo"}`)
		l.reply(asked.RunID, "I go on.")
	}
	told := 0
	for _, post := range l.posts(5) { // the last answer may be posted after it
		if strings.Contains(post.Text+post.Markdown, "by myself") {
			told++
		}
	}
	if told != 1 || len(l.inputs) != 0 {
		t.Errorf("people are told %d times, and there are %d further requests", told, len(l.inputs))
	}
}
