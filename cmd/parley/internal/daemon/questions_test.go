package daemon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/operator"
)

// asking is a daemon whose agent is an AG-UI endpoint that asks before each work.
type asking struct {
	*harness
	inputs chan string // the resume of each run
	serial int
}

func openAsking(t *testing.T) *asking {
	t.Helper()
	return openAskingWith(t, "")
}

// openAskingWith is openAsking with further approvers, each after a comma, and with operators.
func openAskingWith(t *testing.T, approvers string) *asking {
	t.Helper()
	a := &asking{inputs: make(chan string, 16)}
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var input struct {
			RunID  string
			Resume json.RawMessage
		}
		if !takesInput(t, w, r, &input) {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(event string) { fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(event, "THE-RUN", input.RunID)) }
		send(`{"type":"RUN_STARTED","threadId":"t","runId":"THE-RUN"}`)
		if input.Resume == nil {
			send(`{"type":"RUN_FINISHED","threadId":"t","runId":"THE-RUN","outcome":{"type":"interrupt","interrupts":[{"id":"i1","reason":"confirmation","message":"Water them?"}]}}`)
		} else {
			send(`{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"assistant","delta":"Done."}`)
			send(`{"type":"RUN_FINISHED","threadId":"t","runId":"THE-RUN"}`)
		}
		a.inputs <- string(input.Resume)
	}))
	t.Cleanup(endpoint.Close)
	a.harness = open(t, plan{files: map[string]string{"parley.yaml": `
listen: 127.0.0.1:0
shutdown: 30s
console: {listen: "127.0.0.1:0"}
agents:
  - {id: helper, kind: agui, url: "` + endpoint.URL + `", approvers: [` + mara + approvers + `]}
  - {id: echo, kind: echo}
` + operatorKeys}})
	return a
}

// press presses a button of the question.
func (a *asking) press(user, root string, question slacktest.Post, button int) {
	a.t.Helper()
	var blocks []struct {
		Elements []json.RawMessage `json:"elements"`
	}
	if err := json.Unmarshal(question.Blocks, &blocks); err != nil || len(blocks) != 2 || len(blocks[1].Elements) <= button {
		a.t.Fatalf("the blocks are %s, %v", question.Blocks, err)
	}
	a.serial++
	result, err := a.slack.PushRaw(slacktest.Interactive, fmt.Appendf(nil, `{"type":"block_actions","api_app_id":%q,"team":{"id":%q},"user":{"id":%q},"trigger_id":"1.2.%d",
		"channel":{"id":%q,"name":"garden"},"container":{"type":"message","message_ts":%q,"channel_id":%q,"thread_ts":%q},
		"message":{"bot_id":%q,"text":"Water them?","ts":%q,"thread_ts":%q},"actions":[%s]}`,
		slacktest.App, slacktest.Team, user, a.serial, room, question.TS, room, root, slacktest.BotID, question.TS, root, blocks[1].Elements[button])).Wait(a.ctx)
	if err != nil || result.State != slacktest.Acked {
		a.t.Fatalf("%+v, %v\n%s", result, err, a.log)
	}
}

// private waits for the nth sentence that only one user sees.
func (h *harness) private(n int) slacktest.Ephemeral {
	h.t.Helper()
	for len(h.slack.Ephemerals()) < n {
		if !h.poll() {
			h.t.Fatalf("no sentence is shown\n%s", h.log)
		}
	}
	return h.slack.Ephemerals()[n-1]
}

// TestAnApproval: the agent's question has buttons, only an approver may press one, also after a
// restart, and a second press answers nothing.
func TestAnApproval(t *testing.T) {
	t.Parallel()
	a := openAsking(t)
	a.slack.SetHook(slacktest.Hook{URL: a.url + "/hooks/slack/acme", Secret: signingSecret})
	m := a.mention("water the tomatoes")
	same(t, <-a.inputs, "")
	question := a.posts(1)[0]
	if question.Markdown != "Water them?" {
		t.Errorf("the question is %+v", question)
	}
	a.press("U0TOM", m.TS, question, 0)
	if told := a.private(1); told.User != "U0TOM" || !strings.Contains(told.Text, "approvers") {
		t.Errorf("%+v", told)
	}
	a.restart()
	a.slack.SetHook(slacktest.Hook{URL: a.url + "/hooks/slack/acme", Secret: signingSecret})
	a.press(mara, m.TS, question, 0)
	same(t, <-a.inputs, `[{"interruptId":"i1","status":"resolved","payload":{"approved":true}}]`)
	if posts := a.posts(2); posts[1].Text != "Done." || posts[1].ThreadTS != m.TS {
		t.Errorf("%+v", posts[1])
	}
	for len(a.slack.Posts()[0].Blocks) == len(question.Blocks) {
		if !a.poll() {
			t.Fatalf("the question keeps its buttons\n%s", a.log)
		}
	}
	if left := a.slack.Posts()[0]; left.Markdown != question.Markdown || strings.Contains(string(left.Blocks), "actions") {
		t.Errorf("%+v", left)
	}
	a.press(mara, m.TS, question, 1)
	if told := a.private(2); told.User != mara || !strings.Contains(told.Text, "closed") {
		t.Errorf("%+v", told)
	}
	if len(a.inputs) != 0 {
		t.Errorf("the agent was asked again: %s", <-a.inputs)
	}
}

// TestAnOperatorAnswers: only one who is an approver, and once. The agent goes on as after a press, and people see the
// answer without buttons to press.
func TestAnOperatorAnswers(t *testing.T) {
	t.Parallel()
	a := openAskingWith(t, ", 'operator:olga'")
	root := a.mention("water the tomatoes")
	same(t, <-a.inputs, "")
	question := a.posts(1)[0]
	olga := operator.DialURL("http://"+a.daemon.OperatorAddr().String(), operatorToken)
	list, err := olga.Questions(a.ctx, nil)
	if err != nil || len(list.Items) != 1 || !list.Items[0].MayAnswer || !strings.HasPrefix(list.Items[0].Text, "Water them?") || len(list.Items[0].Options) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	run := list.Items[0].Run
	refused := func(c *operator.Client, run string, answer operator.Answer, status int, words string) {
		t.Helper()
		_, err := c.Answer(a.ctx, run, answer)
		if e, ok := errors.AsType[*operator.Error](err); !ok || e.Status != status || !strings.Contains(e.Error(), words) {
			t.Errorf("%v", err)
		}
	}
	refused(a.operate(), run, operator.Answer{Option: "1"}, 403, "operator:local")
	refused(olga, run, operator.Answer{Option: "3"}, 400, "Approve")
	refused(olga, run, operator.Answer{Text: "perhaps"}, 400, "Approve")
	refused(olga, run, operator.Answer{Option: "1", Text: "yes"}, 400, "option")
	refused(olga, "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", operator.Answer{Option: "1"}, 404, "")
	made, err := olga.Answer(a.ctx, run, operator.Answer{Option: "approve", Note: "by telephone"})
	if err != nil || made.State != "answered" || made.Option == "" || made.Message == "" {
		t.Fatalf("%+v %v", made, err)
	}
	same(t, <-a.inputs, `[{"interruptId":"i1","status":"resolved","payload":{"approved":true}}]`)
	if posts := a.posts(2); posts[1].Text != "Done." || posts[1].ThreadTS != root.TS {
		t.Errorf("%+v", posts[1])
	}
	for len(a.slack.Posts()[0].Blocks) == len(question.Blocks) {
		if !a.poll() {
			t.Fatalf("the question keeps its buttons\n%s", a.log)
		}
	}
	refused(olga, run, operator.Answer{Option: "1"}, 409, "answered")
	why, err := olga.Why(a.ctx, made.Message)
	if err != nil || why.Reason != "action" || why.Message.SenderID != "operator:olga" || why.Message.Content != "Approve" {
		t.Errorf("%+v %v", why, err)
	}
	audit, err := olga.Audit(a.ctx, nil)
	if err != nil || !slices.ContainsFunc(audit.Items, func(x operator.Action) bool {
		return x.Who == "olga" && x.What == "question.answer" && x.Subject == run && x.Note == "by telephone" && x.Error == ""
	}) {
		t.Errorf("%+v %v", audit, err)
	}
}

// TestAnApprovalByNumber in a thread without buttons.
func TestAnApprovalByNumber(t *testing.T) {
	t.Parallel()
	a := openAsking(t)
	a.postWeb("water them")
	a.awaitReply("Water them?\n\n1. Approve\n2. Reject")
	same(t, <-a.inputs, "")
	a.postWeb("2")
	for { // olivia is no approver
		messages := a.thread()
		if last := messages[len(messages)-1]; last.Kind == "notice" {
			if !strings.Contains(last.Content, "approvers") || messages[len(messages)-2].Reason != "no-answer" {
				t.Errorf("%+v", messages)
			}
			return
		}
		if !a.poll() {
			t.Fatalf("%+v", messages)
		}
	}
}

// TestStopCommand stops the run of its thread, and tells its sender.
func TestStopCommand(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	m := h.mention("count the leaves")
	asked := h.nextRequest()
	stop := h.newMessage("<@" + slacktest.BotUser + "> /stop")
	stop.ThreadTS = m.TS
	h.slack.Put(slacktest.Post{Channel: stop.Channel, User: stop.User, Text: stop.Text, TS: stop.TS, ThreadTS: stop.ThreadTS})
	h.accept(stop.Mention())
	h.awaitHangup(asked)
	if told := h.private(1); told.User != mara || told.Text != "Stopped." || told.ThreadTS != m.TS {
		t.Errorf("%+v", told)
	}
	h.awaitMetric(envelopesMetric("message", "stored", "command"), 1)
	h.mention("and the weather?")
	if asked := h.answerNext(replyWith("Fine.")); len(asked.messages) != 1 {
		t.Errorf("the agent was asked %q", asked.messages)
	}
}
