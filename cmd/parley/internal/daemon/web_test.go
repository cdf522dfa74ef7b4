package daemon_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// message is a message in a response of the API.
type message struct {
	ID              string
	ClientMessageID string `json:"client_message_id"`
	SenderID        string `json:"sender_id"`
	ThreadSeq       int64  `json:"thread_seq"`
	Role            string
	Content         string
	Metadata        map[string]any
}

// accepted is the response to an accepted message.
type accepted struct {
	ThreadID string `json:"thread_id"`
	Message  message
}

// rejected is the response to a rejected message.
type rejected struct {
	Error struct {
		Code, Message string
		Fields        []struct{ Field, Message string }
	}
}

func (h *harness) post(token, body string) answer {
	h.t.Helper()
	return h.web(http.MethodPost, "ours/messages", token, body)
}

// echoes answers every request to the model until the test ends.
func (h *harness) echoes() *harness {
	go func() {
		for {
			select {
			case a := <-h.model.asked:
				select {
				case a.reply <- replyWith("Noted."):
				case <-a.gone:
				case <-h.ctx.Done():
				}
			case <-h.ctx.Done():
				return
			}
		}
	}()
	return h
}

func TestPostMessage(t *testing.T) {
	t.Parallel()
	h := open(t, plan{}).echoes()
	got := h.post(ownToken, `{"content":"  hello  "}`)
	if got.status != http.StatusAccepted {
		t.Fatalf("%d %s", got.status, got.body)
	}
	made := decode[accepted](t, got.body)
	for name, id := range map[string]string{"thread": made.ThreadID, "message": made.Message.ID} {
		if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 {
			t.Errorf("the %s's id is %q", name, id)
		}
	}
	want := message{ID: made.Message.ID, SenderID: "web:olivia", ThreadSeq: 1, Role: "user", Content: "  hello  ", Metadata: map[string]any{
		"source": "web", "sender_id": "web:olivia", "sender_display_name": "Olivia", "sender_type": "human"}}
	same(t, made.Message, want)
}

func TestIntegrationSetsSender(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	const metadata = `{"sender_type":"bot", "n": 1.50, "source":"irc","sender_id":"irc:al","sender_display_name":"Al","thread_context":"said before"}`
	got := h.post(anyToken, `{"thread_id":"`+thread+`","content":"hi","metadata":`+metadata+`}`)
	if got.status != http.StatusAccepted || !strings.Contains(got.body, `"n":1.50`) {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if made := decode[accepted](t, got.body); made.ThreadID != thread || len(made.Message.Metadata) != 6 {
		t.Errorf("a key was added or lost: %s", got.body)
	}
	same(t, h.answerNext(replyWith("Hi.")).messages, []chatMessage{{"system", "said before"}, {"user", "[Al]: hi"}})
	h.awaitReply("Hi.")
}

// TestAThreadIsOfOneWorkspace: a client names neither the thread of another platform nor one of
// another workspace, whatever its rights are.
func TestAThreadIsOfOneWorkspace(t *testing.T) {
	t.Parallel()
	const other = "canary-other-1f0c77-03ab91cd"
	h := open(t, plan{files: map[string]string{"workspaces/desk.yaml": "id: desk\nplatform: web\nagent: helper\nweb: {tokens: [{id: desk, token: " +
		other + ", name: Desk, senders: any}]}\n"}}).echoes()
	h.postWeb("mine")
	const metadata = `"metadata":{"source":"irc","sender_id":"irc:al","sender_display_name":"Al","sender_type":"human"}`
	for id, want := range map[string]int{
		thread: http.StatusNotFound,
		uuid.NewSHA1(uuid.NameSpaceURL, []byte("parley:slack:acme:D0OLIVIA")).String(): http.StatusBadRequest,
		"0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2c":                                         http.StatusAccepted,
	} {
		if got := h.web(http.MethodPost, "desk/messages", other, `{"thread_id":"`+id+`","content":"hi",`+metadata+`}`); got.status != want {
			t.Errorf("a message in %s: %d %s", id, got.status, got.body)
		}
		if want == http.StatusAccepted {
			continue
		}
		input := `{"threadId":"` + id + `","runId":"run-1","state":{},"messages":[{"id":"m-1","role":"user","content":"hi"}],"tools":[],"context":[],"forwardedProps":{}}`
		if got := h.request(http.MethodPost, "/api/v1/agent/runs", other, "application/json", input); got.status != want {
			t.Errorf("a run in %s: %d %s", id, got.status, got.body)
		}
	}
}

func TestSameClientMessageID(t *testing.T) {
	t.Parallel()
	h := open(t, plan{}).echoes()
	body := func(content string) string {
		return `{"thread_id":"` + thread + `","client_message_id":"c-1","content":"` + content + `"}`
	}
	first, second := h.post(ownToken, body("one")), h.post(ownToken, body("two"))
	if first.status != http.StatusAccepted || second.status != http.StatusOK {
		t.Errorf("%d, then %d", first.status, second.status)
	}
	same(t, decode[accepted](t, second.body), decode[accepted](t, first.body))
	if m := decode[accepted](t, first.body).Message; m.ClientMessageID != "c-1" || uuid.Validate(m.ID) != nil {
		t.Errorf("its ids are %q and %q", m.ClientMessageID, m.ID)
	}
	const other = `{"source":"web","sender_id":"web:bob","sender_display_name":"Bob","sender_type":"human"}`
	third := h.post(anyToken, `{"thread_id":"`+thread+`","client_message_id":"c-1","content":"mine","metadata":`+other+`}`)
	if third.status != http.StatusAccepted || decode[accepted](t, third.body).Message.Content != "mine" {
		t.Errorf("another sender's: %d %s", third.status, third.body)
	}
}

func TestPassiveOverHTTP(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.postWeb("beside", `"passive":true`)
	h.postWeb("inside", `"metadata":{"passive":true}`)
	h.postWeb("now", `"passive":false`)
	same(t, h.nextRequest().messages, []chatMessage{{"system", contextHead + "- Olivia: beside\n- Olivia: inside"}, {"user", "[Olivia]: now"}})
}

// nested returns a JSON value of so many lists inside each other.
func nested(lists int) string { return strings.Repeat("[", lists) + strings.Repeat("]", lists) }

// TestInvalidUTF8 is refused, because it could not be stored as its author typed it.
func TestInvalidUTF8(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for body, words := range map[string]string{
		"{\"content\":\"a\xffb\"}":                          "byte 14 is FF",
		"{\"content\":\"a\",\"metadata\":{\"k\":\"\xe9\"}}": "byte 33 is E9",
		"\ufeff{\"content\":\"a\"}":                         "byte order mark",
	} {
		if got := h.post(ownToken, body); got.status != http.StatusBadRequest || !strings.Contains(string(got.body), words) {
			t.Errorf("%q: %d %q", body, got.status, got.body)
		}
	}
}

// TestFaultyBody compares the fields that a response names, for each body.
func TestFaultyBody(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for name, c := range map[string]struct{ token, body, fields string }{
		"not an object":       {ownToken, `[]`, "body"},
		"no JSON":             {ownToken, `{"content"`, "body"},
		"two objects":         {ownToken, `{"content":"x"}{}`, "body"},
		"no content":          {ownToken, `{}`, "content"},
		"no UUID":             {ownToken, `{"content":"x","thread_id":"7"}`, "thread_id"},
		"many faults":         {anyToken, `{"contents":"x","thread_id":7,"passive":"yes","metadata":{"source":"irc"}}`, "contents thread_id passive content metadata.sender_id metadata.sender_display_name metadata.sender_type"},
		"a key twice":         {ownToken, `{"content":"x","content":"y"}`, "content"},
		"metadata, a key":     {anyToken, `{"content":"x","metadata":{"source":"a","source":"b","sender_id":"a:b","sender_display_name":"c","sender_type":"bot"}}`, "metadata.source"},
		"metadata is missing": {anyToken, `{"content":"x"}`, "metadata.source metadata.sender_id metadata.sender_display_name metadata.sender_type"},
		"another sender": {ownToken, `{"content":"x","metadata":{"source":"slack","sender_id":"slack:U1","sender_display_name":"Ash","sender_type":"bot"}}`,
			"metadata.source metadata.sender_id metadata.sender_display_name metadata.sender_type"},
		"reserved keys": {ownToken, `{"content":"x","metadata":{"thread_context":"x","is_from_me":false,"recipient_id":"bot:x"}}`,
			"metadata.thread_context metadata.is_from_me metadata.recipient_id"},
		"nested deeply": {ownToken, `{"content":"x","metadata":{"a":` + nested(101) + `}}`, "metadata.a"},
	} {
		got := h.post(c.token, c.body)
		fault := decode[rejected](t, got.body).Error
		var fields []string
		for _, f := range fault.Fields {
			fields = append(fields, f.Field)
			if f.Message == "" {
				t.Errorf("%s: %s has no message", name, f.Field)
			}
		}
		if got.status != http.StatusBadRequest || fault.Code == "" || fault.Message == "" || strings.Join(fields, " ") != c.fields {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if metrics := h.get("/metrics").body; strings.Contains(metrics, "parley_envelopes_total{") {
		t.Errorf("an envelope was stored:\n%s", metrics)
	}
}

// TestManyFaults sends a body with 500 faults.
func TestManyFaults(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	var body strings.Builder
	for n := range 500 {
		fmt.Fprintf(&body, `"%s%d":1,`, strings.Repeat("x", 400), n)
	}
	got := h.post(ownToken, "{"+body.String()+`"content":"x"}`)
	if n := len(decode[rejected](t, got.body).Error.Fields); got.status != http.StatusBadRequest || n == 0 || n > 20 || len(got.body) > 6<<10 {
		t.Errorf("%d with %d fields in %d bytes", got.status, n, len(got.body))
	}
}

func TestCallErrors(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	const list = "/threads/" + thread + "/messages"
	for name, c := range map[string]struct {
		method, path, token string
		want                int
	}{
		"no token":             {http.MethodPost, "ours/messages", "", http.StatusUnauthorized},
		"another token":        {http.MethodPost, "ours/messages", "x", http.StatusUnauthorized},
		"no token, reading":    {http.MethodGet, "ours" + list, "", http.StatusUnauthorized},
		"no such workspace":    {http.MethodPost, "theirs/messages", ownToken, http.StatusUnauthorized},
		"not a web workspace":  {http.MethodPost, "acme/messages", ownToken, http.StatusUnauthorized},
		"no such thread":       {http.MethodGet, "ours" + list, ownToken, http.StatusNotFound},
		"a thread of no UUID":  {http.MethodGet, "ours/threads/7/messages", ownToken, http.StatusBadRequest},
		"a limit of no number": {http.MethodGet, "ours" + list + "?limit=many&after=-1", ownToken, http.StatusBadRequest},
		"a limit of nothing":   {http.MethodGet, "ours" + list + "?limit=0", ownToken, http.StatusBadRequest},
		"another method":       {http.MethodPut, "ours/messages", ownToken, http.StatusMethodNotAllowed},
	} {
		got := h.web(c.method, c.path, c.token, `{"content":"x"}`)
		if got.status != c.want || strings.Contains(got.body, ownToken) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// TestBodyLimit sends too large a body, with and without a declared length, and with and
// without a token.
func TestBodyLimit(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	long := []byte(`{"content":"` + strings.Repeat("x", 256<<10) + `"}`)
	for name, body := range map[string]io.Reader{"declared": bytes.NewReader(long), "chunked": io.MultiReader(bytes.NewReader(long))} {
		request, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url+"/api/v1/workspaces/ours/messages", body)
		if err == nil {
			request.Header.Set("Authorization", "Bearer "+ownToken)
		}
		if got := h.send(request, err); got.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := h.post("", string(long)); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("without a token: %d", got.status)
	}
}

func TestThreadPages(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, content := range []string{"1", "2", "3", "4", "5"} {
		h.postWeb(content, `"passive":true`)
	}
	var read []string
	path := "ours/threads/" + thread + "/messages?limit=2"
	for pages := 0; path != "" && pages < 5; pages++ {
		got := h.web(http.MethodGet, path, ownToken, "")
		page := decode[struct {
			Messages []listed
			Next     *int64
		}](t, got.body)
		for _, m := range page.Messages {
			read = append(read, m.Content)
		}
		path = ""
		if page.Next != nil {
			path = "ours/threads/" + thread + "/messages?limit=2&after=" + string(rune('0'+*page.Next))
		}
	}
	same(t, read, []string{"1", "2", "3", "4", "5"})
}

// TestLocalWorkspaceNeedsItsToken, which is made once and which only its owner may read. No address and
// no header replaces it.
func TestLocalWorkspaceNeedsItsToken(t *testing.T) {
	t.Parallel()
	h := open(t, plan{without: true})
	token := h.local()
	if info, err := os.Stat(h.localFile); err != nil || info.Mode().Perm() != 0o600 || len(token) < 24 {
		t.Errorf("%v, %v", info, err)
	}
	for _, c := range []struct {
		token  string
		header []string
		want   int
	}{
		{token, nil, http.StatusAccepted},
		{token, []string{"X-Forwarded-For", "10.0.0.1"}, http.StatusAccepted},
		{"", nil, http.StatusUnauthorized},
		{"", []string{"Origin", "https://evil.example"}, http.StatusUnauthorized},
		{token + "x", nil, http.StatusUnauthorized},
	} {
		got := h.request(http.MethodPost, "/api/v1/workspaces/local/messages", c.token, "application/json", `{"content":"hello","passive":true}`, c.header...)
		if got.status != c.want {
			t.Errorf("%+v: %d %s", c, got.status, got.body)
		}
	}
	if err := errors.Join(h.stop(), h.start("")); err != nil {
		t.Fatal(err)
	}
	if again := h.local(); again != token {
		t.Error("the next start has another token")
	}
}

func TestLocalWorkspaceEchoes(t *testing.T) {
	t.Parallel()
	h := open(t, plan{without: true})
	got := h.web(http.MethodPost, "local/messages", h.local(), `{"thread_id":"`+thread+`","content":"hello"}`)
	if made := decode[accepted](t, got.body); got.status != http.StatusAccepted || made.Message.Metadata["source"] != "web" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for h.poll() {
		got := h.web(http.MethodGet, "local/threads/"+thread+"/messages", h.local(), "")
		if list := decode[struct{ Messages []listed }](t, got.body).Messages; len(list) == 2 {
			if list[1].Role != "assistant" || list[1].Content != "hello" {
				t.Errorf("%+v", list)
			}
			return
		}
	}
	t.Fatalf("there is no reply\n%s", h.log)
}
