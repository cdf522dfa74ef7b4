package daemon_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// The secrets of the programs of the workspaces irc and mail, and of the people there.
const (
	ircToken     = "canary-irc-5c81f0-9d27ab34"
	mailToken    = "canary-mail-6d92e1-8c36bc45"
	bridgeSecret = "canary-bridge-7ea3d2-7b45cd56"
	ircNora      = `"metadata":{"sender_id":"nora","sender_display_name":"Nora","sender_type":"human"}`
	ircTomas     = `"metadata":{"sender_id":"tomas","sender_display_name":"Tomás","sender_type":"human"}`
	ircGarden    = `"channel":{"id":"#garden","type":"room"}`
)

// bridgeAsked is a request of the daemon's to a program.
type bridgeAsked struct {
	Type, ID, Channel, Thread, Content, Asker string
	InReplyTo                                 string `json:"in_reply_to"`
	Buttons                                   []struct{ ID, Label string }
	DispatchType                              string          `json:"dispatch_type"`
	DispatchConfig                            json.RawMessage `json:"dispatch_config"`
}

// bridged is a daemon with two programs.
type bridged struct {
	*harness
	asked chan bridgeAsked
	// url is the address of the programs.
	url string
}

// bridgeFile returns the file of the workspace of a program. more are further lines.
func bridgeFile(id, token, url, more string) string {
	return "\nid: " + id + "\nplatform: bridge\nagent: helper\nturns: {coalesce: 0s}\nbridge: {token: " + token + `, deliver: {url: "` + url + `", secret: ` + bridgeSecret +
		"}, edits: true, buttons: true}\n" + more
}

// newPrograms starts the address of the programs.
func newPrograms(t *testing.T) (url string, asked chan bridgeAsked) {
	t.Helper()
	asked = make(chan bridgeAsked, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil { // the daemon has stopped
			return
		}
		asked <- decode[bridgeAsked](t, string(raw))
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// openBridge starts a daemon with the programs irc and mail. more are further lines of irc's file.
func openBridge(t *testing.T, more string) *bridged {
	t.Helper()
	url, asked := newPrograms(t)
	h := open(t, plan{files: map[string]string{
		"workspaces/irc.yaml": bridgeFile("irc", ircToken, url, more), "workspaces/mail.yaml": bridgeFile("mail", mailToken, url, ""),
		"workspaces/ours.yaml": `
id: ours
platform: web
agent: helper
web:
  tokens:
    - {id: robot, token: ` + anyToken + `, name: Robot, senders: any, read: [irc]}
    - {id: crm, token: ` + crmToken + `, name: CRM, injects: [irc]}
`}})
	return &bridged{h, asked, url}
}

// post posts a request of a program.
func (h *harness) bridge(workspace, token, body string) answer {
	h.t.Helper()
	return h.request(http.MethodPost, "/hooks/bridge/"+workspace, token, "application/json", body)
}

// accepts posts a request that the daemon must store.
func (b *bridged) accepts(body string) answer {
	b.t.Helper()
	got := b.bridge("irc", ircToken, body)
	if got.status != http.StatusAccepted {
		b.t.Fatalf("%s: %d %s\n%s", body, got.status, got.body, b.log)
	}
	return got
}

// next returns the next request of the daemon's.
func (b *bridged) next() bridgeAsked {
	b.t.Helper()
	select {
	case asked := <-b.asked:
		return asked
	case <-b.ctx.Done():
		b.t.Fatalf("the program is asked nothing\n%s", b.log)
	}
	return bridgeAsked{}
}

// stored returns the messages of the threads of irc.
func (b *bridged) stored() string {
	b.t.Helper()
	threads := decode[struct {
		Threads []struct {
			ID string `json:"thread_id"`
		}
	}](b.t, b.web(http.MethodGet, "irc/threads", anyToken, "").body).Threads
	all := ""
	for _, thread := range threads {
		all += b.web(http.MethodGet, "irc/threads/"+thread.ID+"/messages", anyToken, "").body
	}
	return all
}

// TestABridge: people of a chat that Parley does not know are answered in the place of their question, whose program gets back what it
// has given. The same message is recorded once. Files are stored before the answer.
func TestABridge(t *testing.T) {
	t.Parallel()
	b := openBridge(t, "")
	b.accepts(`{"id":"m1",` + ircGarden + `,"content":"it rained",` + ircTomas + `}`)
	question := `{"id":"m2",` + ircGarden + `,"thread":"t1","content":"is it dry?","mentioned":true,` + ircNora + `,"dispatch_type":"mail","dispatch_config":{"box": 7}}`
	b.accepts(question)
	asked := b.answerNext(replyWith("**No**."))
	if got := asked.text(); !strings.Contains(got, "[Nora]: is it dry?") || !strings.Contains(got, `dispatch_config: {"box": 7}`) || strings.Contains(got, "rained") {
		t.Errorf("the agent gets %q", got)
	}
	got := b.next()
	if got.Type != "post" || got.ID == "" || got.Channel != "#garden" || got.Thread != "t1" || got.InReplyTo != "m2" || got.Asker != "nora" || got.Content != "No." || got.DispatchType != "mail" || string(got.DispatchConfig) != `{"box":7}` {
		t.Errorf("%+v", got)
	}
	same(t, b.bridge("irc", ircToken, question).status, http.StatusOK)

	file := `{"id":"m3",` + ircGarden + `,"content":"look","mentioned":true,` + ircNora + `,"attachments":[{"name":"a.txt","mime_type":"text/plain","data":"aGkgdGhlcmU="}]}`
	b.accepts(file)
	b.answerNext(replyWith("Seen."))
	if got := b.next(); got.Thread != "" || got.InReplyTo != "m3" || got.DispatchType != "" {
		t.Errorf("%+v", got)
	}
	if got := b.stored(); strings.Count(got, "is it dry?") != 1 || !strings.Contains(got, `"name":"a.txt"`) || !strings.Contains(got, `"sender_id":"bridge:irc/nora"`) || strings.Contains(got, "aGkgdGhlcmU=") {
		t.Errorf("%s", got)
	}
	m := b.inject(http.StatusAccepted, "irc", "from a ticket", `,"to":{"channel":"#garden"},"mentioned":true,"announce":true,"dispatch_type":"crm"`)
	b.answerNext(replyWith("Told."))
	shown, answered := b.next(), b.next()
	if m.Message.ID == "" || shown.Channel != "#garden" || !strings.Contains(shown.Content, "from a ticket") || answered.Content != "Told." || answered.InReplyTo != shown.ID || answered.DispatchType != "" {
		t.Errorf("%+v %+v", shown, answered)
	}
	same(t, len(b.asked), 0)
}

// TestABridgeDeletes: the agent reads an edited message in its new words, and no deleted one, whose words leave the store.
func TestABridgeDeletes(t *testing.T) {
	t.Parallel()
	b := openBridge(t, "")
	b.accepts(`{"id":"m1",` + ircGarden + `,"content":"a secret word",` + ircNora + `}`)
	b.accepts(`{"id":"m2",` + ircGarden + `,"content":"it rained",` + ircNora + `}`)
	b.accepts(`{"type":"edit","id":"m1","content":"a secret sentence"}`)
	b.accepts(`{"type":"edit","id":"m2","content":"it snowed"}`)
	b.accepts(`{"type":"delete","id":"m1"}`)
	b.accepts(`{"id":"m3",` + ircGarden + `,"content":"still there?","mentioned":true,` + ircNora + `}`)
	if asked := b.answerNext(replyWith("Yes.")).text(); strings.Contains(asked, "secret") || strings.Contains(asked, "rained") || !strings.Contains(asked, "it snowed") {
		t.Errorf("the agent gets %q", asked)
	}
	same(t, b.next().InReplyTo, "m3")
	if got := b.stored(); strings.Contains(got, "secret") {
		t.Errorf("%s", got)
	}
}

// TestDoorsOfABridge: only the token of the workspace's own program opens its hook, and nobody else speaks as a person of the bridge.
// The program speaks as nobody but its people. A faulty request is refused with all fields, and stores nothing.
func TestDoorsOfABridge(t *testing.T) {
	t.Parallel()
	b := openBridge(t, "")
	whole := `{"id":"m1",` + ircGarden + `,"content":"is it dry?",` + ircNora + `}`
	for _, token := range []string{"", "wrong", mailToken, anyToken, bridgeSecret} {
		same(t, b.bridge("irc", token, whole).status, http.StatusUnauthorized)
	}
	same(t, b.bridge("mail", ircToken, whole).status, http.StatusUnauthorized)
	same(t, b.bridge("ours", anyToken, whole).status, http.StatusUnauthorized)
	same(t, b.bridge("none", ircToken, whole).status, http.StatusUnauthorized)
	long := strings.Replace(whole, "is it dry?", strings.Repeat("x", 1<<20), 1)
	same(t, b.bridge("irc", ircToken, long).status, http.StatusRequestEntityTooLarge)
	got := b.bridge("irc", ircToken, `{"id":"m1",`+ircGarden+`,"mentioned":"yes","metadata":{"sender_id":"nora","sender_type":"human","recipient_id":"bot:helper"}}`)
	for _, field := range []string{"content", "mentioned", "metadata.sender_display_name"} {
		if got.status != http.StatusBadRequest || !strings.Contains(got.body, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", field, got.status, got.body)
		}
	}
	same(t, b.stored(), "")

	for _, id := range []string{"bridge:irc/nora", "Bridge:irc/nora"} {
		metadata := `"metadata":{"source":"crm","sender_id":"` + id + `","sender_display_name":"Nora","sender_type":"human"}`
		for workspace, token := range map[string]string{"ours": anyToken, "irc": crmToken} {
			got := b.web(http.MethodPost, workspace+"/messages", token, `{"content":"x",`+metadata+map[string]string{"irc": `,"to":{"channel":"#garden"}`}[workspace]+`}`)
			if got.status != http.StatusBadRequest || !strings.Contains(got.body, `"field":"metadata.sender_id"`) {
				t.Errorf("%s in %s: %d %s", id, workspace, got.status, got.body)
			}
		}
	}
	for i, id := range []string{"operator:olga", "slack:" + mara, "schedule:morning", "bridge:mail/nora", "../mail/nora"} {
		b.accepts(`{"id":"f` + strconv.Itoa(i) + `",` + ircGarden + `,"content":"x","metadata":{"sender_id":"` + id + `","sender_display_name":"X","sender_type":"human"}}`)
		b.awaitMetric(`parley_envelopes_total{disposition="stored",kind="message",reason="no-mention",workspace="irc"}`, float64(i+1))
		if got := b.stored(); !strings.Contains(got, `"sender_id":"bridge:irc/`+id+`"`) {
			t.Errorf("%s: %s", id, got)
		}
	}
	same(t, len(b.asked), 0)
}

// TestPolicyOfABridge: the policy decides about the people of a program as about those of a platform.
func TestPolicyOfABridge(t *testing.T) {
	t.Parallel()
	b := openBridge(t, "policy: {allow_users: [\"bridge:irc/nora\"]}\n")
	b.accepts(`{"id":"m1",` + ircGarden + `,"content":"refused","mentioned":true,` + ircTomas + `}`)
	b.accepts(`{"id":"m2",` + ircGarden + `,"content":"to nobody",` + ircNora + `}`)
	b.accepts(`{"id":"m3",` + ircGarden + `,"content":"admitted","mentioned":true,` + ircNora + `}`)
	if asked := b.answerNext(replyWith("Yes.")).text(); strings.Contains(asked, "refused") || !strings.Contains(asked, "to nobody") || !strings.Contains(asked, "admitted") {
		t.Errorf("the agent gets %q", asked)
	}
	same(t, b.next().InReplyTo, "m3")
}

// TestAnApprovalOnABridge: the buttons of an approval are pressed by its approvers alone. A person of another program with the same id
// is another person.
func TestAnApprovalOnABridge(t *testing.T) {
	t.Parallel()
	a := openAskingWith(t, `, "bridge:irc/nora"`)
	url, asked := newPrograms(t)
	write(t, a.dir+"/workspaces/mail.yaml", bridgeFile("mail", mailToken, url, ""))
	a.change("workspaces/irc.yaml", bridgeFile("irc", ircToken, url, ""))
	b := &bridged{a.harness, asked, url}
	press := func(workspace, token, id, who string, question bridgeAsked) {
		t.Helper()
		got := b.bridge(workspace, token, `{"type":"press","id":"`+id+`",`+ircGarden+`,"post":"`+question.ID+`","button":"`+question.Buttons[0].ID+`","content":"Approve",`+who+`}`)
		if got.status != http.StatusAccepted {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	b.accepts(`{"id":"m1",` + ircGarden + `,"content":"water the tomatoes","mentioned":true,` + ircTomas + `}`)
	same(t, <-a.inputs, "")
	question := b.next()
	if question.Content != "Water them?" || len(question.Buttons) != 2 {
		t.Fatalf("%+v", question)
	}
	press("irc", ircToken, "p1", ircTomas, question) // nobody else is told, because the program shows nothing to one person
	press("mail", mailToken, "p1", ircNora, question)
	for _, workspace := range []string{"irc", "mail"} {
		b.awaitMetric(`parley_envelopes_total{disposition="stored",kind="action",reason="action",workspace="`+workspace+`"}`, 1)
	}
	same(t, len(a.inputs)+len(b.asked), 0)
	press("irc", ircToken, "p2", ircNora, question)
	same(t, <-a.inputs, `[{"interruptId":"i1","status":"resolved","payload":{"approved":true}}]`)
	for got := []string{}; len(got) < 2; {
		switch one := b.next(); {
		case one.Type == "edit" && one.ID == question.ID && len(one.Buttons) == 0, one.Type == "post" && one.Content == "Done.":
			got = append(got, one.Type)
		default:
			t.Fatalf("%+v", one)
		}
	}
}
