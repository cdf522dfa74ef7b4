package daemon_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"parley/ingest/journal/threads"
)

// ask posts a message of an integration to the web thread.
func (h *harness) ask(content, metadata string, more ...string) answer {
	h.t.Helper()
	return h.post(anyToken, `{"thread_id":"`+thread+`","content":`+quoted(content)+`,"metadata":{"source":"irc","sender_id":"irc:al",
		"sender_display_name":"Al","sender_type":"human"`+metadata+`}`+strings.Join(append([]string{""}, more...), ",")+`}`)
}

// TestFailedRunIsVisible: the asked message shows its run from the begin, and the run's end
// leaves one notice that the agent never sees.
func TestFailedRunIsVisible(t *testing.T) {
	t.Parallel()
	h := open(t, plan{turns: "coalesce: 0s, max_attempts: 1"})
	h.postWeb("are you well?")
	asked := h.nextRequest()
	h.postWeb("and now?")
	list := h.thread()
	if first, second := list[0].Run, list[1].Run; first.State != "running" || first.ID != asked.run || second.State != "queued" || second.ID != "" {
		t.Errorf("%+v, %+v", first, second)
	}
	h.answer(asked, failWith(http.StatusServiceUnavailable))
	same(t, h.answerNext(replyWith("Yes.")).messages, []chatMessage{{"user", "[Olivia]: are you well?"}, {"user", "[Olivia]: and now?"}})
	list = h.awaitReply("Yes.")
	if len(list) != 4 {
		t.Fatalf("%+v", list)
	}
	if m := list[0]; m.Run.State != "failed" || m.Run.ID != asked.run || !strings.Contains(m.Run.Error, "something went wrong") || m.Trigger != "run" || m.Reason != "direct" {
		t.Errorf("%+v %+v", m, m.Run)
	}
	if m := list[1]; m.Run.State != "done" || m.Run.Error != "" {
		t.Errorf("%+v", m.Run)
	}
	if m := list[2]; m.Role != "system" || m.Kind != "notice" || m.Content != list[0].Run.Error || m.RunID != asked.run || m.Run != nil || uuid.Validate(m.ID) != nil {
		t.Errorf("%+v", m)
	}
}

// TestOutOfMemory: a message that its sender keeps out of memory is in its own turn only.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	const out = `,"include_in_memory":false`
	h.ask("a passive secret", out, `"passive":true`)
	h.ask("a secret question", out)
	same(t, h.answerNext(replyWith("Yes.")).messages, []chatMessage{{"user", "[Al]: a secret question"}})
	h.awaitReply("Yes.")
	h.ask("again", `,"include_in_memory":true`)
	same(t, h.answerNext(replyWith("No.")).messages, []chatMessage{{"assistant", "Yes."}, {"user", "[Al]: again"}})
	h.awaitReply("No.")
}

// TestRecipientIsAsked: a recipient_id asks another agent of the workspace, also right after
// a message to the first one.
func TestRecipientIsAsked(t *testing.T) {
	t.Parallel()
	files := map[string]string{"workspaces/ours.yaml": `
id: ours
platform: web
agent: helper
web:
  tokens:
    - {id: olivia, token: ` + ownToken + `, name: Olivia}
    - {id: bridge, token: ` + anyToken + `, name: Bridge, senders: any}
channels:
  - {id: elsewhere, agent: echo}
turns: {coalesce: 200ms}
`}
	h := open(t, plan{files: files})
	h.ask("one", "")
	h.ask("two", `,"recipient_id":"bot:echo"`)
	same(t, h.answerNext(replyWith("First.")).messages, []chatMessage{{"user", "[Al]: one"}})
	list := h.awaitReply("two")
	if len(list) != 4 || list[2].SenderID != "agent:helper" || list[3].SenderID != "agent:echo" {
		t.Errorf("%+v", list)
	}
	if got := h.ask("three", `,"recipient_id":"bot:nobody"`); got.status != http.StatusAccepted || !strings.Contains(got.body, `"reason":"not-for-us"`) {
		t.Errorf("another bot: %d %s", got.status, got.body)
	}
	h.ask("four", "")
	asked := h.answerNext(replyWith("Second.")).messages // the message to the other bot is context
	same(t, asked[len(asked)-2:], []chatMessage{{"system", contextHead + "- Al: three"}, {"user", "[Al]: four"}})
	h.awaitReply("Second.")
	if got := h.ask("five", `,"recipient_id":"helper"`); got.status != http.StatusBadRequest || !strings.Contains(got.body, "metadata.recipient_id") {
		t.Errorf("no bot: %d %s", got.status, got.body)
	}
}

// TestAttachmentReachesAgent: the bytes that a client hands in are stored, and the agent gets
// them.
func TestAttachmentReachesAgent(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	got := h.ask("what is it?", "", `"attachments":[{"name":"cat.png","mime_type":"image/png","data":"`+base64.StdEncoding.EncodeToString([]byte(catPNG))+`"}]`)
	if got.status != http.StatusAccepted || !strings.Contains(got.body, `"name":"cat.png","mime_type":"image/png"`) {
		t.Fatalf("%d %s", got.status, got.body)
	}
	asked := h.nextRequest()
	if asked.images() != 1 {
		t.Errorf("the agent got %q", asked.messages)
	}
	h.answer(asked, replyWith("A cat."))
	h.awaitReply("A cat.")
	if got := h.ask("x", "", `"attachments":[{"name":"cat.png","mime_type":"image/png","data":"`+base64.StdEncoding.EncodeToString([]byte("<html>sign in</html>"))+`"}]`); got.status != http.StatusBadRequest {
		t.Errorf("another type: %d %s", got.status, got.body)
	}
}

// TestThreadsOfEveryWorkspace: a token with read lists and reads the threads of a Slack
// workspace, and writes nothing there.
func TestThreadsOfEveryWorkspace(t *testing.T) {
	t.Parallel()
	const reader = "canary-reader-77be09-41c6d2f8"
	h := open(t, plan{files: map[string]string{"workspaces/desk.yaml": "id: desk\nplatform: web\nagent: helper\nweb: {tokens: [{id: desk, token: " +
		reader + ", name: Desk, read: [acme]}]}\n"}})
	m := h.mention("are we on?")
	h.answerNext(replyWith("Yes."))
	h.posts(1)
	got := h.web(http.MethodGet, "acme/threads", reader, "")
	list := decode[struct {
		Threads []struct {
			ThreadID string `json:"thread_id"`
			Key      string
			Title    string
			Messages int
		}
	}](t, got.body).Threads
	if len(list) != 1 || list[0].Key != "slack:acme:"+m.Channel+":"+m.TS || list[0].Title != "<@U0BOT> are we on?" || list[0].Messages != 2 ||
		!threads.IsDerived(list[0].ThreadID) {
		t.Fatalf("%d %s", got.status, got.body)
	}
	path := "acme/threads/" + list[0].ThreadID + "/messages"
	read := decode[struct{ Messages []listed }](t, h.web(http.MethodGet, path, reader, "").body).Messages
	if len(read) != 2 || read[0].SenderID != "slack:"+mara || read[0].Reason != "mention" || read[1].Content != "Yes." {
		t.Errorf("%+v", read)
	}
	for path, token := range map[string]string{path: ownToken, "acme/threads": anyToken, "ours/threads": reader} {
		if got := h.web(http.MethodGet, path, token, ""); got.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}
