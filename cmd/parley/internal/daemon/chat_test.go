package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/postgres/postgrestest"
)

const (
	bobToken   = "canary-bob-7c20e1-90ab4fd2"
	scoutToken = "canary-scout-3e55d7-61fc08b4"
	oliviaID   = "user:cab9ee32-ba26-59ea-b824-a6ce8b75dc93" // the UUIDv5 of her token
	bobID      = "user:0b0b0b0b-0000-4000-8000-000000000001"
	scoutID    = "agent:5c007000-0000-4000-8000-000000000002"
	echoID     = "agent:bf661de3-2e1e-5c36-93d4-fb28c269f3b2" // the UUIDv5 of the agent
	chatPath   = "/api/v1/chat/threads"
)

// chatPlan is documentsPlan with the agent echo, another user and an agent outside Parley.
func chatPlan(store string) plan {
	p := documentsPlan(store, "")
	p.files["workspaces/ours.yaml"] = `
id: ours
platform: web
agent: echo
web:
  tokens:
    - {id: olivia, token: ` + ownToken + `, name: Olivia}
    - {id: bob, token: ` + bobToken + `, name: Bob, actor: "` + bobID + `"}
    - {id: scout, token: ` + scoutToken + `, name: Scout, actor: "` + scoutID + `"}
turns: {coalesce: 0s}
`
	return p
}

// everyChat runs a test with a daemon of chatPlan on each engine.
func everyChat(t *testing.T, test func(t *testing.T, h *harness)) {
	t.Parallel()
	for name, store := range map[string]func(t *testing.T) string{
		"SQLite":     func(*testing.T) string { return "sqlite:data/parley.db" },
		"PostgreSQL": func(t *testing.T) string { return postgrestest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t, chatPlan(store(t))))
		})
	}
}

// chat sends a request about threads. It fails the test if the status is another one.
func (h *harness) chat(status int, method, path, token, body string) string {
	h.t.Helper()
	got := h.request(method, chatPath+path, token, "application/json", body)
	if got.status != status {
		h.t.Fatalf("%s %s: %d %s, want %d", method, path, got.status, got.body, status)
	}
	return got.body
}

// newThread makes a thread of Olivia's and returns its path.
func (h *harness) newThread(mode string) string {
	h.t.Helper()
	return "/" + decode[struct{ ID string }](h.t, h.chat(http.StatusCreated, "POST", "", ownToken, `{"mode":"`+mode+`"}`)).ID
}

var (
	anUUID = regexp.MustCompile(`"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"`)
	aTime  = regexp.MustCompile(`"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)
)

// golden compares a response with the wanted one, in which ID is a UUID and TIME a time.
func golden(t *testing.T, got, want string) {
	t.Helper()
	got = aTime.ReplaceAllString(anUUID.ReplaceAllString(got, `"ID"`), `"TIME"`)
	same(t, decode[any](t, got), decode[any](t, want))
}

// messages waits until a thread has a number of messages, and returns them.
func (h *harness) messages(thread string, n int) []string {
	h.t.Helper()
	for {
		list := decode[struct{ Messages []json.RawMessage }](h.t, h.chat(http.StatusOK, "GET", thread+"/messages", ownToken, "")).Messages
		if len(list) >= n {
			texts := make([]string, len(list))
			for i, m := range list {
				texts[i] = string(m)
			}
			return texts
		}
		if !h.poll() {
			h.t.Fatalf("the thread has %d messages, want %d: %s\n%s", len(list), n, list, h.log)
		}
	}
}

// TestThreadsOfCaller makes, lists and reads threads.
func TestThreadsOfCaller(t *testing.T) {
	everyChat(t, func(t *testing.T, h *harness) {
		golden(t, h.chat(http.StatusCreated, "POST", "", ownToken, `{"mode":"invocation_only"}`), `{"id":"ID","mode":"invocation_only","created_at":"TIME"}`)
		second := h.newThread("open")
		third := h.newThread("open")
		page := decode[struct {
			Threads []struct{ ID string }
			Next    string
		}](t, h.chat(http.StatusOK, "GET", "?limit=2", ownToken, ""))
		same(t, []string{"/" + page.Threads[0].ID, "/" + page.Threads[1].ID}, []string{third, second})
		golden(t, h.chat(http.StatusOK, "GET", "?limit=2&before="+page.Next, ownToken, ""), `{"threads":[{"id":"ID","mode":"invocation_only","created_at":"TIME"}],"next":null}`)
		golden(t, h.chat(http.StatusOK, "GET", "", bobToken, ""), `{"threads":[],"next":null}`)
		h.chat(http.StatusCreated, "POST", second+"/messages", ownToken, `{"content":"hi"}`)
		h.messages(second, 2)
		golden(t, h.chat(http.StatusOK, "GET", strings.ToUpper(second), ownToken, ""), `{"id":"ID","mode":"open","created_at":"TIME","thread_seq":2,
			"participants":[{"id":"`+oliviaID+`","name":"Olivia"},{"id":"`+echoID+`","name":"echo"},{"id":"`+scoutID+`","name":"Scout"}]}`)
		for body, fields := range map[string]string{`{"mode":"closed"}`: "mode", `{"title":"x"}`: "title", `[]`: "body", ``: "body"} {
			got := decode[rejected](t, h.chat(http.StatusBadRequest, "POST", "", ownToken, body))
			same(t, got.Error.Fields[0].Field, fields)
		}
	})
}

// TestChatMessage plays the document's example of a user, with the answer of an agent.
func TestChatMessage(t *testing.T) {
	everyChat(t, func(t *testing.T, h *harness) {
		thread := h.newThread("open")
		const hello = `{"content":"Hello!","client_message_id":"unique-id-123"}`
		const want = `{"id":"ID","thread_id":"ID","sender_id":"` + oliviaID + `","role":"user","content":"Hello!","metadata":null,
			"created_at":"TIME","client_message_id":"unique-id-123","thread_seq":1}`
		first := h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, hello)
		golden(t, first, want)
		list := h.messages(thread, 2)
		golden(t, list[0], want)
		reply := decode[struct{ Metadata map[string]any }](t, list[1])
		if reply.Metadata["run_id"] == nil || reply.Metadata["sender_id"] != nil {
			t.Errorf("the reply's metadata is %v", reply.Metadata)
		}
		golden(t, regexp.MustCompile(`"metadata":{[^}]*}`).ReplaceAllString(list[1], `"metadata":null`), `{"id":"ID","thread_id":"ID","sender_id":"`+echoID+`","role":"assistant",
			"content":"Hello!","metadata":null,"created_at":"TIME","client_message_id":null,"thread_seq":2,
			"base_seq":1,"latest_seen_seq":1,"server_seq_at_submit":1,"stale":false,"stale_lag":0}`)
		again := h.chat(http.StatusOK, "POST", thread+"/messages", ownToken, `{"content":"Other words","client_message_id":"unique-id-123"}`)
		same(t, decode[any](t, again), decode[any](t, first))

		kept := h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"Look","metadata":{"n": 1.50},"mentions":["`+echoID+`"]}`)
		if !strings.Contains(kept, `"metadata":{"n":1.50,"mentions":["`+echoID+`"]}`) {
			t.Errorf("the metadata has lost its bytes: %s", kept)
		}
		h.messages(thread, 4)
		var seqs []int64
		for _, query := range []string{"?limit=3", "?after=3", "?before=3&limit=1"} {
			page := decode[struct {
				Messages []struct {
					Seq int64 `json:"thread_seq"`
				}
			}](t, h.chat(http.StatusOK, "GET", thread+"/messages"+query, ownToken, ""))
			for _, m := range page.Messages {
				seqs = append(seqs, m.Seq)
			}
		}
		same(t, seqs, []int64{1, 2, 3, 4, 2})
	})
}

// TestAgentMessage plays the document's example of an external agent.
func TestAgentMessage(t *testing.T) {
	everyChat(t, func(t *testing.T, h *harness) {
		thread := h.newThread("invocation_only")
		for _, text := range []string{"one", "two", "three"} {
			h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"`+text+`"}`)
		}
		const head = `{"id":"ID","thread_id":"ID","sender_id":"` + scoutID + `","role":"assistant","created_at":"TIME",`
		golden(t, h.chat(http.StatusCreated, "POST", thread+"/agent-messages", scoutToken,
			`{"content":"Hello from my agent!","client_message_id":"unique-id-456","base_seq":1,"latest_seen_seq":2}`),
			head+`"content":"Hello from my agent!","metadata":null,"client_message_id":"unique-id-456","thread_seq":4,
			"base_seq":1,"latest_seen_seq":2,"server_seq_at_submit":3,"stale":true,"stale_lag":2}`)
		golden(t, h.chat(http.StatusCreated, "POST", thread+"/agent-messages", scoutToken, `{"content":"And this"}`),
			head+`"content":"And this","metadata":null,"client_message_id":null,"thread_seq":5,
			"base_seq":null,"latest_seen_seq":null,"server_seq_at_submit":4,"stale":null,"stale_lag":null}`)
		golden(t, h.chat(http.StatusCreated, "POST", thread+"/agent-messages", scoutToken, `{"content":"What now?","base_seq":5,"mentions":["`+echoID+`"]}`),
			head+`"content":"What now?","metadata":{"mentions":["`+echoID+`"]},"client_message_id":null,"thread_seq":6,
			"base_seq":5,"latest_seen_seq":null,"server_seq_at_submit":5,"stale":false,"stale_lag":0}`)
		if last := h.messages(thread, 7)[6]; !strings.Contains(last, `"content":"What now?"`) || !strings.Contains(last, echoID) {
			t.Errorf("the mentioned agent says %s", last)
		}
	})
}

// TestInvocationOnly checks that only a mention is answered, and that the answer knows the
// messages before it.
func TestInvocationOnly(t *testing.T) {
	t.Parallel()
	p := chatPlan("sqlite:data/parley.db")
	p.files["workspaces/ours.yaml"] = strings.Replace(p.files["workspaces/ours.yaml"], "agent: echo", "agent: helper", 1)
	h := open(t, p)
	thread := h.newThread("invocation_only")
	h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"We meet at nine."}`)
	h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"Hey, when do we meet?","mentions":["`+h.agents(thread)["helper"]+`"]}`)
	same(t, h.answerNext(replyWith("At nine.")).messages, []chatMessage{{"system", contextHead + "- Olivia: We meet at nine."}, {"user", "[Olivia]: Hey, when do we meet?"}})
	h.messages(thread, 3)
}

// agents returns the ids of a thread's participants by their names.
func (h *harness) agents(thread string) map[string]string {
	h.t.Helper()
	ids := map[string]string{}
	for _, p := range decode[struct{ Participants []struct{ ID, Name string } }](h.t, h.chat(http.StatusOK, "GET", thread, ownToken, "")).Participants {
		ids[p.Name] = p.ID
	}
	return ids
}

// TestOthersThreads checks that a thread of another caller looks like none, and the rights of
// agents.
func TestOthersThreads(t *testing.T) {
	everyChat(t, func(t *testing.T, h *harness) {
		thread := h.newThread("open")
		none := h.chat(http.StatusNotFound, "GET", "/6ba7b810-9dad-41d1-80b4-00c04fd430c8", bobToken, "")
		for _, route := range []string{"GET ", "GET /messages", "GET /stream", "POST /messages"} {
			method, path, _ := strings.Cut(route, " ")
			for _, token := range []string{bobToken, theirToken} {
				same(t, h.chat(http.StatusNotFound, method, thread+path, token, `{"content":"hi"}`), none)
			}
		}
		workspace := func(status int, method, path, token, body string) string {
			got := h.web(method, "ours"+path, token, body)
			same(t, got.status, status)
			return got.body
		}
		intrusion := `{"thread_id":"` + thread[1:] + `","content":"hi"}`
		same(t, workspace(http.StatusNotFound, "POST", "/messages", bobToken, intrusion), none)
		same(t, workspace(http.StatusNotFound, "GET", "/threads"+thread+"/messages", bobToken, ""), none)
		workspace(http.StatusForbidden, "POST", "/messages", scoutToken, intrusion)
		workspace(http.StatusAccepted, "POST", "/messages", ownToken, intrusion)
		workspace(http.StatusOK, "GET", "/threads"+thread+"/messages", scoutToken, "")
		h.chat(http.StatusOK, "GET", thread+"/messages", scoutToken, "")
		h.chat(http.StatusForbidden, "POST", thread+"/messages", scoutToken, `{"content":"hi"}`)
		h.chat(http.StatusForbidden, "POST", "", scoutToken, `{}`)
		h.chat(http.StatusForbidden, "POST", thread+"/agent-messages", ownToken, `{"content":"hi"}`)
		h.chat(http.StatusUnauthorized, "GET", thread, "", "")
		h.chat(http.StatusBadRequest, "GET", "/7", ownToken, "")
		if got := h.request("POST", chatPath+thread+"/messages", ownToken, "text/plain", `{"content":"hi"}`); got.status != http.StatusUnsupportedMediaType {
			t.Errorf("a body that is not JSON: %d %s", got.status, got.body)
		}
	})
}

// TestFaultyChatMessage compares the fields that a response names, for each body.
func TestFaultyChatMessage(t *testing.T) {
	t.Parallel()
	h := open(t, chatPlan("sqlite:data/parley.db"))
	thread := h.newThread("open")
	long := strings.Repeat("ä", 5000)
	h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"`+long+`"}`)
	for name, c := range map[string]struct{ token, body, fields string }{
		"no content":            {ownToken, `{}`, "content"},
		"empty content":         {ownToken, `{"content":""}`, "content"},
		"too long":              {ownToken, `{"content":"` + long + `x"}`, "content"},
		"a number":              {ownToken, `{"content":7}`, "content"},
		"an unknown key":        {ownToken, `{"content":"x","thread_id":"y"}`, "thread_id"},
		"an agent's key":        {ownToken, `{"content":"x","base_seq":1}`, "base_seq"},
		"no participant":        {ownToken, `{"content":"x","mentions":["alice"]}`, "mentions"},
		"an unknown agent":      {ownToken, `{"content":"x","mentions":["agent:6ba7b810-9dad-41d1-80b4-00c04fd430c8"]}`, "mentions"},
		"another identity":      {ownToken, `{"content":"x","metadata":{"sender_id":"` + bobID + `"}}`, "metadata.sender_id"},
		"mentions in metadata":  {ownToken, `{"content":"x","metadata":{"mentions":[]}}`, "metadata.mentions"},
		"a recipient":           {ownToken, `{"content":"x","metadata":{"recipient_id":"bot:echo"}}`, "metadata.recipient_id"},
		"a negative base":       {scoutToken, `{"content":"x","base_seq":-1,"latest_seen_seq":"2"}`, "base_seq latest_seen_seq"},
		"the server's own":      {scoutToken, `{"content":"x","server_seq_at_submit":1}`, "server_seq_at_submit"},
		"no object":             {ownToken, `7`, "body"},
		"an idempotency key":    {ownToken, `{"content":"x","client_message_id":""}`, "client_message_id"},
		"deep metadata":         {ownToken, `{"content":"x","metadata":{"a":` + nested(101) + `}}`, "metadata.a"},
		"a file that is copied": {ownToken, `{"content":"x","attachments":[{"name":"a","bucket":"b","path":"c"}]}`, "attachments[0]"},
	} {
		path := "/messages"
		if c.token == scoutToken {
			path = "/agent-messages"
		}
		var fields []string
		for _, f := range decode[rejected](t, h.chat(http.StatusBadRequest, "POST", thread+path, c.token, c.body)).Error.Fields {
			fields = append(fields, f.Field)
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%s: the faults are in %q, want %q", name, got, c.fields)
		}
	}
	if got := h.post(ownToken, `{"content":"x","known":{"base_seq":1}}`); got.status != http.StatusBadRequest {
		t.Errorf("an integration sets what an agent knew: %d %s", got.status, got.body)
	}
}

// listener reads a stream of server-sent events.
type listener struct {
	t     *testing.T
	lines *bufio.Scanner
}

// hear opens the stream of a thread; last is the Last-Event-ID, or empty.
func (h *harness) hear(thread, token, last string) *listener {
	h.t.Helper()
	return &listener{h.t, h.stream(chatPath+thread, token, last)}
}

// stream opens a stream of server-sent events and returns its lines.
func (h *harness) stream(path, token, last string) *bufio.Scanner {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.ctx)
	h.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	response, err := h.client.Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		h.t.Fatalf("%v %v", response, err)
	}
	h.t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewScanner(response.Body)
}

// heard returns the next event: its id, its name and its content.
func (l *listener) heard() string {
	l.t.Helper()
	var fields []string
	for l.lines.Scan() {
		key, value, _ := strings.Cut(l.lines.Text(), ": ")
		switch {
		case key == "data":
			m := decode[struct {
				Content string
				Seq     int64 `json:"thread_seq"`
			}](l.t, value)
			fields = append(fields, m.Content)
		case value != "":
			fields = append(fields, value)
		case key == "" && len(fields) > 0:
			return strings.Join(fields, " ")
		}
	}
	l.t.Fatalf("the stream has ended: %v", l.lines.Err())
	return ""
}

// TestThreadStream checks that a stream has the messages in order, continues behind the last
// one, and shows edits and deletes.
func TestThreadStream(t *testing.T) {
	everyChat(t, func(t *testing.T, h *harness) {
		thread := h.newThread("open")
		live := h.hear(thread+"/stream", ownToken, "")
		h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"one"}`)
		same(t, []string{live.heard(), live.heard()}, []string{"1 one", "2 one"})
		h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"two"}`)
		same(t, []string{live.heard(), live.heard()}, []string{"3 two", "4 two"})
		same(t, h.hear(thread+"/stream?after=2", scoutToken, "").heard(), "3 two")
		same(t, h.hear(thread+"/stream?after=1", ownToken, "3").heard(), "4 two")

		h.alter(thread[1:], 1, event.Event{Kind: event.KindEdit, Message: &event.Message{Content: "uno", Revision: "2"}})
		same(t, live.heard(), "edit uno")
		h.alter(thread[1:], 3, event.Event{Kind: event.KindDelete})
		same(t, live.heard(), "delete ")
		same(t, len(h.messages(thread, 3)), 3)
		late := h.hear(thread+"/stream", ownToken, "1")
		same(t, []string{late.heard(), late.heard(), late.heard()}, []string{"edit uno", "2 one", "4 two"})
	})
}

// alter records an edit or a delete of a message, as a platform with such events does.
func (h *harness) alter(thread string, seq int64, e event.Event) {
	h.t.Helper()
	if err := h.daemon.Change(h.ctx, "ours", thread, seq, e); err != nil {
		h.t.Fatal(err)
	}
}

// TestStreamOverNodes checks that a stream has the messages that other nodes record.
func TestStreamOverNodes(t *testing.T) {
	t.Parallel()
	store := postgrestest.URL(t)
	one, two := open(t, chatPlan(store)), open(t, chatPlan(store))
	thread := one.newThread("open")
	live := []*listener{one.hear(thread+"/stream", ownToken, ""), two.hear(thread+"/stream", ownToken, "")}
	one.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"one"}`)
	one.messages(thread, 2)
	two.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"two"}`)
	for _, l := range live {
		same(t, []string{l.heard(), l.heard(), l.heard(), l.heard()}, []string{"1 one", "2 one", "3 two", "4 two"})
	}
}

// TestChatLimit checks that a caller above a limit is told when to ask again, that nothing of
// its message is stored, and that messages that ask no agent have no limit.
func TestChatLimit(t *testing.T) {
	t.Parallel()
	p := chatPlan("sqlite:data/parley.db")
	p.files["workspaces/ours.yaml"] += "limits: {runs_per_user: 1/h}\n"
	h := open(t, p)
	thread, quiet := h.newThread("open"), h.newThread("invocation_only")
	const first = `{"content":"one","client_message_id":"c1"}`
	h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, first)
	got := h.request("POST", chatPath+thread+"/messages", ownToken, "application/json", `{"content":"two"}`)
	if wait, err := strconv.Atoi(got.header.Get("Retry-After")); got.status != http.StatusTooManyRequests || err != nil || wait < 3500 || wait > 3600 {
		t.Errorf("%d %s, Retry-After %q", got.status, got.body, got.header.Get("Retry-After"))
	}
	h.chat(http.StatusOK, "POST", thread+"/messages", ownToken, first)
	h.chat(http.StatusCreated, "POST", quiet+"/messages", ownToken, `{"content":"for later"}`)
	h.chat(http.StatusTooManyRequests, "POST", quiet+"/messages", ownToken, `{"content":"now","mentions":["`+echoID+`"]}`)
	h.messages(thread, 2)
	h.clock.advance(time.Hour)
	golden(t, h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"two"}`), `{"id":"ID","thread_id":"ID","sender_id":"`+oliviaID+`",
		"role":"user","content":"two","metadata":null,"created_at":"TIME","client_message_id":null,"thread_seq":3}`)
	for _, unasked := range []string{`{"content":"for later","metadata":{"passive":true}}`, `{"content":"/status"}`} {
		h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, unasked)
	}
}

// TestLimitsOfTokens checks that the holder of a token, also of an agent's or a signed one, has one limit
// on all routes, and that an integration's senders have one each.
func TestLimitsOfTokens(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	p := jwtPlan(i)
	p.files["workspaces/ours.yaml"] = strings.Replace(p.files["workspaces/ours.yaml"], "  tokens:\n", "  tokens:\n    - {id: bridge, token: "+anyToken+"2, name: Bridge, senders: any}\n", 1) +
		"limits: {runs_per_user: 1/h}\n"
	h := open(t, p)
	reason := func(token, thread, metadata string) string {
		t.Helper()
		got := h.web("POST", "ours/messages", token, `{"thread_id":"`+thread+`","content":"hi"`+metadata+`}`)
		return decode[struct{ Message struct{ Reason string } }](t, got.body).Message.Reason
	}
	thread := h.newThread("open")
	for _, token := range []string{ownToken, i.sign("k1", h.claims("ivy"))} {
		mine := decode[struct{ ID string }](t, h.chat(http.StatusCreated, "POST", "", token, `{}`)).ID
		same(t, reason(token, mine, ""), "direct")
		h.chat(http.StatusTooManyRequests, "POST", "/"+mine+"/messages", token, `{"content":"and this?"}`)
		run := `{"threadId":"` + mine + `","runId":"r","messages":[{"id":"m","role":"user","content":"and this?"}]}`
		same(t, h.request("POST", "/api/v1/agent/runs", token, "application/json", run).status, http.StatusTooManyRequests)
		same(t, reason(token, mine, ""), "limit")
	}
	ask := `{"content":"now","mentions":["` + echoID + `"]}`
	h.chat(http.StatusCreated, "POST", thread+"/agent-messages", scoutToken, ask)
	h.chat(http.StatusTooManyRequests, "POST", thread+"/agent-messages", scoutToken, ask)
	h.chat(http.StatusCreated, "POST", thread+"/agent-messages", scoutToken, `{"content":"no question"}`)
	for _, want := range []string{"al direct", "bo direct", "al limit"} {
		sender, want, _ := strings.Cut(want, " ")
		same(t, reason(anyToken+"2", thread[1:], `,"metadata":{"source":"irc","sender_id":"irc:`+sender+`","sender_display_name":"X","sender_type":"human"}`), want)
	}
	if got := h.web("POST", "ours/messages", ownToken, `{"content":"x","token_id":"bob"}`); got.status != http.StatusBadRequest {
		t.Errorf("a client names the token that counts: %d %s", got.status, got.body)
	}
}

// TestOrigins checks that browsers may show the answers only to pages of configured origins.
func TestOrigins(t *testing.T) {
	t.Parallel()
	const page = "https://app.example.com"
	allowed := func(h *harness, method, path, origin string) (int, string) {
		got := h.request(method, path, ownToken, "", "", "Origin", origin, "Access-Control-Request-Method", "GET")
		if strings.Join(got.header.Values("Vary"), " ") != "Origin" {
			t.Errorf("%s %s may be stored for other origins: %v", method, path, got.header)
		}
		return got.status, got.header.Get("Access-Control-Allow-Origin")
	}
	p := chatPlan("sqlite:data/parley.db")
	p.files["workspaces/ours.yaml"] = strings.Replace(p.files["workspaces/ours.yaml"], "web:\n", "web:\n  origins: ["+page+"]\n", 1)
	h := open(t, p)
	for name, c := range map[string]struct {
		method, path, origin string
		status               int
		allowed              string
	}{
		"a page":                 {"GET", chatPath, page, 200, page},
		"its preflight":          {"OPTIONS", chatPath, page, 204, page},
		"its error":              {"GET", chatPath + "/7", page, 400, page},
		"another page":           {"GET", chatPath, "https://evil.example", 200, ""},
		"another's preflight":    {"OPTIONS", chatPath, "https://evil.example", 405, ""},
		"a page without a name":  {"OPTIONS", chatPath, "null", 405, ""},
		"a page of another port": {"OPTIONS", chatPath, page + ":8443", 405, ""},
	} {
		if status, origin := allowed(h, c.method, c.path, c.origin); status != c.status || origin != c.allowed {
			t.Errorf("%s: %d, allowed %q", name, status, origin)
		}
	}
	for _, path := range []string{"/metrics", "/readyz"} {
		if got := h.request("GET", path, "", "", "", "Origin", page); got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s is for pages: %v", path, got.header)
		}
	}
	off := open(t, chatPlan("sqlite:data/parley.db"))
	if got := off.request("OPTIONS", chatPath, "", "", "", "Origin", page, "Access-Control-Request-Method", "GET"); got.status != http.StatusMethodNotAllowed || got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without origins: %d %v", got.status, got.header)
	}
}

// TestSignalSpeaksAsActor checks that the input of a signal is a message of the caller's actor.
func TestSignalSpeaksAsActor(t *testing.T) {
	t.Parallel()
	h := open(t, chatPlan("sqlite:data/parley.db"))
	thread := h.newThread("open")
	h.chat(http.StatusCreated, "POST", thread+"/messages", ownToken, `{"content":"one"}`)
	reply := decode[struct{ Metadata map[string]any }](t, h.messages(thread, 2)[1])
	run := fmt.Sprintf("/runs/%v", reply.Metadata["run_id"])
	for _, request := range []string{"POST " + run + "/signals", "GET /api/v1" + run + "/events", "GET /runs" + thread + strings.TrimPrefix(run, "/runs") + "/stream"} {
		method, path, _ := strings.Cut(request, " ")
		if got := h.request(method, path, bobToken, "application/json", `{"signal":"Stop"}`); got.status != http.StatusNotFound {
			t.Errorf("%s of another caller: %d %s", request, got.status, got.body)
		}
	}
	got := h.request("POST", run+"/signals", ownToken, "application/json", `{"signal":"UserInput","data":{"message":"two"}}`)
	if got.status != http.StatusAccepted {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if two := h.messages(thread, 3)[2]; !strings.Contains(two, `"content":"two"`) || !strings.Contains(two, oliviaID) {
		t.Errorf("the input is %s", two)
	}
}

// TestOneConversationOnAllRoutes begins a conversation on the plain route. Its writer reads it, and goes on with it, on every other one. A
// caller who knows its id does so on the plain route alone, until it writes there.
func TestOneConversationOnAllRoutes(t *testing.T) {
	everyChat(t, func(t *testing.T, h *harness) {
		posted := h.web(http.MethodPost, "ours/messages", ownToken, `{"content":"hello"}`)
		same(t, posted.status, http.StatusAccepted)
		id := decode[struct {
			ThreadID string `json:"thread_id"`
		}](t, posted.body).ThreadID
		history := "/api/v1/agent/history?threadId=" + id
		same(t, h.request(http.MethodGet, history, ownToken, "", "").status, http.StatusOK)
		h.chat(http.StatusOK, http.MethodGet, "/"+id, ownToken, "")
		if list := h.chat(http.StatusOK, http.MethodGet, "", ownToken, ""); !strings.Contains(list, id) {
			t.Errorf("her threads are %s", list)
		}
		h.chat(http.StatusCreated, http.MethodPost, "/"+id+"/messages", ownToken, `{"content":"and again"}`)
		if got := h.postRun(ownToken, runInput(id, "run-1", `"hi"`)); got.status != http.StatusAccepted && got.status != http.StatusOK {
			t.Errorf("a run: %d %s", got.status, got.body)
		}
		same(t, h.request(http.MethodGet, history, bobToken, "", "").status, http.StatusNotFound)
		h.chat(http.StatusNotFound, http.MethodGet, "/"+id, bobToken, "")
		same(t, h.web(http.MethodPost, "ours/messages", bobToken, `{"content":"me too","thread_id":"`+id+`"}`).status, http.StatusAccepted)
		same(t, h.request(http.MethodGet, history, bobToken, "", "").status, http.StatusOK)
	})
}
