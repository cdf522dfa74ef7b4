package daemon_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// message is a message in an answer of the API.
type message struct {
	ID        string
	ThreadSeq int64 `json:"thread_seq"`
	Role      string
	Content   string
	Metadata  map[string]any
}

// taken is the answer to a message that was taken.
type taken struct {
	ThreadID string `json:"thread_id"`
	Message  message
}

// refused is the answer to one that was not.
type refused struct {
	Error struct {
		Code, Message string
		Fields        []struct{ Field, Message string }
	}
}

func (h *house) post(token, body string) answer {
	h.t.Helper()
	return h.web(http.MethodPost, "ours/messages", token, body)
}

// echoes lets the agent answer by itself until the test ends.
func (h *house) echoes() *house {
	go func() {
		for {
			select {
			case a := <-h.model.asked:
				select {
				case a.reply <- says("Noted."):
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

func TestAMessageOverHTTP(t *testing.T) {
	t.Parallel()
	h := open(t, plan{}).echoes()
	got := h.post(ownToken, `{"content":"  hello  "}`)
	if got.status != http.StatusAccepted {
		t.Fatalf("%d %s", got.status, got.body)
	}
	made := decode[taken](t, got.body)
	for name, id := range map[string]string{"thread": made.ThreadID, "message": made.Message.ID} {
		if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 {
			t.Errorf("the %s's id is %q", name, id)
		}
	}
	want := message{ID: made.Message.ID, ThreadSeq: 1, Role: "user", Content: "  hello  ", Metadata: map[string]any{
		"source": "web", "sender_id": "web:olivia", "sender_display_name": "Olivia", "sender_type": "human"}}
	same(t, made.Message, want)
}

func TestAnIntegrationSpeaksForOthers(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	const metadata = `{"sender_type":"bot", "n": 1.50, "source":"irc","sender_id":"irc:al","sender_display_name":"Al","thread_context":"said before"}`
	got := h.post(anyToken, `{"thread_id":"`+thread+`","content":"hi","metadata":`+metadata+`}`)
	if got.status != http.StatusAccepted || !strings.Contains(got.body, `"n":1.50`) {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if made := decode[taken](t, got.body); made.ThreadID != thread || len(made.Message.Metadata) != 6 {
		t.Errorf("a hint was added, or a key lost: %s", got.body)
	}
	same(t, h.asks(says("Hi.")).messages, []spoken{{"system", "said before"}, {"user", "[Al]: hi"}})
	h.awaitReply("Hi.")
}

func TestTheSameClientMessageIsTheFirst(t *testing.T) {
	t.Parallel()
	h := open(t, plan{}).echoes()
	body := func(content string) string {
		return `{"thread_id":"` + thread + `","client_message_id":"c-1","content":"` + content + `"}`
	}
	first, second := h.post(ownToken, body("one")), h.post(ownToken, body("two"))
	if first.status != http.StatusAccepted || second.status != http.StatusOK {
		t.Errorf("%d, then %d", first.status, second.status)
	}
	same(t, decode[taken](t, second.body), decode[taken](t, first.body))
	if id := decode[taken](t, first.body).Message.ID; id != "c-1" {
		t.Errorf("its id is %q", id)
	}
	const other = `{"source":"web","sender_id":"web:bob","sender_display_name":"Bob","sender_type":"human"}`
	third := h.post(anyToken, `{"thread_id":"`+thread+`","client_message_id":"c-1","content":"mine","metadata":`+other+`}`)
	if third.status != http.StatusAccepted || decode[taken](t, third.body).Message.Content != "mine" {
		t.Errorf("another sender's: %d %s", third.status, third.body)
	}
}

func TestPassiveOverHTTP(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.typed("beside", `"passive":true`)
	h.typed("inside", `"metadata":{"passive":true}`)
	h.typed("now", `"passive":false`)
	same(t, h.ask().messages, []spoken{{"system", contextHead + "- Olivia: beside\n- Olivia: inside"}, {"user", "[Olivia]: now"}})
}

// TestFaultsAreNamedAtOnce holds the fields that an answer names, for each body.
func TestFaultsAreNamedAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for name, c := range map[string]struct{ token, body, fields string }{
		"no object":           {ownToken, `[]`, "body"},
		"no JSON":             {ownToken, `{"content"`, "body"},
		"two objects":         {ownToken, `{"content":"x"}{}`, "body"},
		"no content":          {ownToken, `{}`, "content"},
		"no UUID":             {ownToken, `{"content":"x","thread_id":"7"}`, "thread_id"},
		"everything":          {anyToken, `{"contents":"x","thread_id":7,"passive":"yes","metadata":{"source":"irc"}}`, "contents thread_id passive content metadata.sender_id metadata.sender_display_name metadata.sender_type"},
		"a key twice":         {ownToken, `{"content":"x","content":"y"}`, "content"},
		"metadata, a key":     {anyToken, `{"content":"x","metadata":{"source":"a","source":"b","sender_id":"a:b","sender_display_name":"c","sender_type":"bot"}}`, "metadata.source"},
		"metadata is missing": {anyToken, `{"content":"x"}`, "metadata.source metadata.sender_id metadata.sender_display_name metadata.sender_type"},
		"another's name": {ownToken, `{"content":"x","metadata":{"source":"slack","sender_id":"slack:U1","sender_display_name":"Ash","sender_type":"bot"}}`,
			"metadata.source metadata.sender_id metadata.sender_display_name metadata.sender_type"},
		"claims": {ownToken, `{"content":"x","metadata":{"thread_context":"x","is_from_me":false,"recipient_id":"bot:x"}}`,
			"metadata.thread_context metadata.is_from_me metadata.recipient_id"},
	} {
		got := h.post(c.token, c.body)
		fault := decode[refused](t, got.body).Error
		var fields []string
		for _, f := range fault.Fields {
			fields = append(fields, f.Field)
			if f.Message == "" {
				t.Errorf("%s: %s has no words", name, f.Field)
			}
		}
		if got.status != http.StatusBadRequest || fault.Code == "" || fault.Message == "" || strings.Join(fields, " ") != c.fields {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if metrics := h.get("/metrics").body; strings.Contains(metrics, "parley_envelopes_total{") {
		t.Errorf("something was stored:\n%s", metrics)
	}
}

func TestWhoMayCall(t *testing.T) {
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
		"no such workspace":    {http.MethodPost, "theirs/messages", ownToken, http.StatusNotFound},
		"not a web workspace":  {http.MethodPost, "acme/messages", ownToken, http.StatusNotFound},
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

// TestABodyHasALimit sends too much with and without saying so before, as
// somebody who may call and as nobody.
func TestABodyHasALimit(t *testing.T) {
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
		t.Errorf("from nobody: %d", got.status)
	}
}

func TestAThreadIsReadInPages(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	for _, content := range []string{"1", "2", "3", "4", "5"} {
		h.typed(content, `"passive":true`)
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

// TestTheLocalWorkspaceTrustsThisMachineAlone: it asks for no token, and so for
// everything by which a page of elsewhere or a proxy shows.
func TestTheLocalWorkspaceTrustsThisMachineAlone(t *testing.T) {
	t.Parallel()
	h := open(t, plan{without: true})
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"as it should be":    {func(*http.Request) {}, http.StatusAccepted},
		"by name":            {func(r *http.Request) { r.Host = "localhost:8484" }, http.StatusAccepted},
		"by the other name":  {func(r *http.Request) { r.Host = "[::1]:8484" }, http.StatusAccepted},
		"its own page":       {func(r *http.Request) { r.Header.Set("Origin", "http://"+r.Host) }, http.StatusAccepted},
		"with a charset":     {func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, http.StatusAccepted},
		"another host":       {func(r *http.Request) { r.Host = "rebound.example" }, http.StatusForbidden},
		"another address":    {func(r *http.Request) { r.Host = "127.0.0.1.example:8484" }, http.StatusForbidden},
		"another page":       {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		"a page of nowhere":  {func(r *http.Request) { r.Header.Set("Origin", "null") }, http.StatusForbidden},
		"a form":             {func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusForbidden},
		"no type":            {func(r *http.Request) { r.Header.Del("Content-Type") }, http.StatusForbidden},
		"forwarded for":      {func(r *http.Request) { r.Header.Set("X-Forwarded-For", "10.0.0.1") }, http.StatusForbidden},
		"forwarded host":     {func(r *http.Request) { r.Header.Set("X-Forwarded-Host", "x") }, http.StatusForbidden},
		"forwarded properly": {func(r *http.Request) { r.Header.Set("Forwarded", "for=10.0.0.1") }, http.StatusForbidden},
		"by way of":          {func(r *http.Request) { r.Header.Set("Via", "1.1 proxy") }, http.StatusForbidden},
	} {
		request, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url+"/api/v1/workspaces/local/messages",
			strings.NewReader(`{"content":"hello","passive":true}`))
		if err == nil {
			request.Header.Set("Content-Type", "application/json")
			request.Host = request.URL.Host
			c.change(request)
		}
		if got := h.send(request, err); got.status != c.want {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

func TestTheLocalWorkspaceEchoes(t *testing.T) {
	t.Parallel()
	h := open(t, plan{without: true})
	got := h.web(http.MethodPost, "local/messages", "", `{"thread_id":"`+thread+`","content":"hello"}`)
	if made := decode[taken](t, got.body); got.status != http.StatusAccepted || made.Message.Metadata["source"] != "web" {
		t.Fatalf("%d %s", got.status, got.body)
	}
	for h.again() {
		got := h.web(http.MethodGet, "local/threads/"+thread+"/messages", "", "")
		if list := decode[struct{ Messages []listed }](t, got.body).Messages; len(list) == 2 {
			if list[1].Role != "assistant" || list[1].Content != "hello" {
				t.Errorf("%+v", list)
			}
			return
		}
	}
	t.Fatalf("no reply came\n%s", h.log)
}
