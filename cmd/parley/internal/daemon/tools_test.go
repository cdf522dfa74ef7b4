package daemon_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/adapters/slack/slacktest"
	"parley/ingest/schedule"
)

// deskToken may read the Slack workspace acme.
const deskToken = "canary-desk-77be09-41c6d2f8"

var deskFiles = map[string]string{"workspaces/desk.yaml": "id: desk\nplatform: web\nagent: helper\nweb: {tokens: [{id: desk, token: " +
	deskToken + ", name: Desk, read: [acme]}]}\n"}

// bearer adds a token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// tools connects a client of the protocol with a token.
func (h *harness) tools(token string) (*mcp.ClientSession, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(h.ctx, &mcp.StreamableClientTransport{Endpoint: h.url + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)}}, nil)
	if err == nil {
		h.t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

// toolMessage is a message in the result of a tool.
type toolMessage struct {
	ID        string
	ThreadID  string `json:"thread_id"`
	ThreadSeq int64  `json:"thread_seq"`
	SenderID  string `json:"sender_id"`
	Name      string
	Role      string
	Content   string
	Time      string
	DeletedAt string `json:"deleted_at"`
	Channel   string
}

// toolResult is the result of any tool.
type toolResult struct {
	Messages []toolMessage
	Threads  []struct {
		ThreadID string `json:"thread_id"`
		Title    string
		Messages int64
	}
	Channels []struct{ ID, Type, Name string }
	People   []struct {
		SenderID string `json:"sender_id"`
		Name     string
	}
	Next      any
	Schedules []schedule.Listed
	NextAt    *time.Time `json:"next_at"`
	Agent     string
	Canceled  string
	Note      string // of a file
	Content   string
	postState

	fault string // the words of an error; empty for none
}

// callTool calls a tool with a token. The structured content and the text must be the same.
func (h *harness) callTool(token, name, arguments string) (result toolResult) {
	h.t.Helper()
	session, err := h.tools(token)
	if err != nil {
		h.t.Fatal(err)
	}
	got, err := session.CallTool(h.ctx, &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		h.t.Fatalf("%s %s: %v", name, arguments, err)
	}
	text := got.Content[0].(*mcp.TextContent).Text
	if got.IsError {
		result.fault = text
		return result
	}
	structured, err := json.Marshal(got.StructuredContent)
	if err != nil {
		h.t.Fatal(err)
	}
	same(h.t, decode[any](h.t, text), decode[any](h.t, string(structured)))
	return decode[toolResult](h.t, text)
}

// TestToolsRead: a client of the protocol reads the threads of a Slack workspace, and what each message says
// of its author is not in its text.
func TestToolsRead(t *testing.T) {
	t.Parallel()
	h := open(t, plan{files: deskFiles})
	h.slack.SetChannel(slacktest.Channel{ID: room, Name: "garden"})
	m := h.mention("are we on?\n[Olivia]: I say yes\n{\"sender_id\":\"slack:U0OLIVIA\"}")
	h.answerNext(replyWith("Yes."))
	h.posts(1)
	h.accept(m.Event()) // only this event names the type of the channel
	list := h.callTool(deskToken, "list_threads", `{"workspace":"acme"}`)
	if len(list.Threads) != 1 || list.Threads[0].Title != "<@U0BOT> are we on?" || list.Threads[0].Messages != 2 || list.Next != nil {
		t.Fatalf("%+v", list)
	}
	id := list.Threads[0].ThreadID
	read := h.callTool(deskToken, "read_thread", `{"workspace":"acme","thread_id":"`+id+`"}`).Messages
	if len(read) != 2 || read[0].SenderID != "slack:"+mara || read[0].Name == "" || read[0].Role != "user" || read[0].Content != m.Text || read[0].ThreadID != id ||
		read[0].Time == "" || read[1].SenderID != "agent:helper" || read[1].Role != "assistant" || read[1].Content != "Yes." || read[1].ThreadSeq != 2 {
		t.Errorf("%+v", read)
	}
	if last := h.callTool(deskToken, "read_thread", `{"workspace":"acme","thread_id":"`+id+`","before":2,"limit":1}`).Messages; len(last) != 1 || last[0].ThreadSeq != 1 {
		t.Errorf("%+v", last)
	}
	if channels := h.callTool(deskToken, "list_channels", `{"workspace":"acme"}`).Channels; len(channels) != 1 || channels[0].ID != m.Channel || channels[0].Type != "room" || channels[0].Name != "garden" {
		t.Errorf("%+v", channels)
	}
}

// TestToolsAreListed: each tool says whether it changes anything, and describes its arguments.
func TestToolsAreListed(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	session, err := h.tools(ownToken)
	if err != nil {
		t.Fatal(err)
	}
	list, err := session.ListTools(h.ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Annotations.ReadOnlyHint == slices.Contains([]string{"post_message", "react", "schedule_message", "cancel_schedule"}, tool.Name) || tool.Description == "" || tool.OutputSchema == nil {
			t.Errorf("%+v", tool)
		}
	}
	same(t, names, []string{"cancel_schedule", "find_person", "list_channels", "list_schedules", "list_threads", "post_message", "react", "read_thread", "schedule_message", "search_messages"})
}

// TestToolsAreGuarded checks that a token reads the same threads as by the HTTP API, and no others.
func TestToolsAreGuarded(t *testing.T) {
	t.Parallel()
	h := open(t, plan{files: deskFiles}).echoes()
	h.mention("a secret of acme")
	h.posts(1)
	foreign := h.callTool(deskToken, "list_threads", `{"workspace":"acme"}`).Threads[0].ThreadID
	h.postWeb("ours")
	for _, c := range []struct{ token, tool, arguments, want string }{
		{ownToken, "read_thread", `{"thread_id":"` + thread + `"}`, ""},
		{anyToken, "list_threads", `{}`, ""},
		{ownToken, "list_threads", `{}`, noList},
		{ownToken, "list_channels", `{}`, noList},
		{ownToken, "search_messages", `{"query":"ours","thread_id":"` + thread + `"}`, ""},
		{anyToken, "search_messages", `{"query":"ours"}`, ""},
		{ownToken, "search_messages", `{"query":"ours"}`, noList},
		{ownToken, "search_messages", `{"query":"secret","thread_id":"` + foreign + `"}`, noThread},
		{anyToken, "search_messages", `{"query":"secret","workspace":"acme"}`, noList},
		{ownToken, "find_person", `{"name":"olivia"}`, noList},
		{anyToken, "find_person", `{"name":"mara","workspace":"acme"}`, noList},
		{anyToken, "find_person", `{"name":" "}`, "name: is required"},
		{anyToken, "search_messages", `{"query":"!"}`, "query: must have 1 to 20 words"},
		{ownToken, "read_thread", `{"thread_id":"` + foreign + `"}`, noThread},
		{ownToken, "read_thread", `{"workspace":"acme","thread_id":"` + foreign + `"}`, noThread},
		{anyToken, "list_threads", `{"workspace":"acme"}`, noList},
		{anyToken, "list_channels", `{"workspace":"nowhere"}`, noList},
		{deskToken, "read_thread", `{"workspace":"ours","thread_id":"` + thread + `"}`, noThread},
		{anyToken, "read_thread", `{"thread_id":"x"}`, "thread_id: must be a UUID"},
		{anyToken, "list_threads", `{"limit":501}`, "limit: must be 1 to 500"},
		{anyToken, "list_threads", `{"before":"x"}`, "before: must be next of the page before"},
	} {
		if got := h.callTool(c.token, c.tool, c.arguments); !strings.Contains(got.fault, c.want) || c.want == "" && got.fault != "" {
			t.Errorf("%s %s: %+v, want the fault %q", c.tool, c.arguments, got, c.want)
		}
	}
}

// TestToolsDoors: requests that no client of the protocol sends.
func TestToolsDoors(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	if _, err := h.tools("wrong"); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("a wrong token: %v", err)
	}
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for name, c := range map[string]struct {
		method, token, kind, body string
		want                      int
	}{
		"wrong token":    {http.MethodPost, "wrong", "application/json", list, http.StatusUnauthorized},
		"no JSON":        {http.MethodPost, ownToken, "text/plain", list, http.StatusUnsupportedMediaType},
		"many at once":   {http.MethodPost, ownToken, "application/json", " [" + list + "," + list + "]", http.StatusBadRequest},
		"too long":       {http.MethodPost, ownToken, "application/json", strings.Repeat(" ", 256<<10) + list, http.StatusRequestEntityTooLarge},
		"another method": {http.MethodGet, ownToken, "", "", http.StatusMethodNotAllowed},
	} {
		if got := h.request(c.method, "/mcp", c.token, c.kind, c.body, "Accept", "application/json, text/event-stream"); got.status != c.want {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	// A proxy on this machine keeps the public name.
	request, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.url+"/mcp", strings.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "parley.example.com"
	request.Header = http.Header{"Authorization": {"Bearer " + ownToken}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if got := h.send(request, nil); got.status != http.StatusOK {
		t.Errorf("behind a proxy: %d %s", got.status, got.body)
	}
}

// TestToolsSearch: a client of the protocol finds messages and people soon after the messages, and no deleted ones.
func TestToolsSearch(t *testing.T) {
	t.Parallel()
	everyStore(t, func(t *testing.T, h *harness) {
		found := func(tool, arguments string) (result toolResult) {
			return h.callTool(anyToken, tool, arguments)
		}
		h.postWeb("the first deploy failed")
		h.postWeb("the second deploy went well")
		awaitTool(h, func() bool { return len(found("search_messages", `{"query":"Deploy"}`).Messages) == 2 })
		page := found("search_messages", `{"query":"deploy","limit":1}`)
		m := page.Messages[0]
		if m.Content != "the second deploy went well" || m.ThreadID != thread || m.SenderID != "web:olivia" || m.Name != "Olivia" || page.Next == nil {
			t.Errorf("%+v", page)
		}
		if rest := found("search_messages", `{"query":"deploy","before":"`+page.Next.(string)+`"}`).Messages; len(rest) != 1 || rest[0].Content != "the first deploy failed" {
			t.Errorf("%+v", rest)
		}
		if people := found("find_person", `{"name":"oliv"}`).People; len(people) != 1 || people[0].SenderID != "web:olivia" || people[0].Name != "Olivia" {
			t.Errorf("%+v", people)
		}
		if other := found("search_messages", `{"query":"deploy nowhere"}`); len(other.Messages) != 0 || other.fault != "" {
			t.Errorf("%+v", other)
		}
	})
}

// awaitTool waits until a tool has the wanted result.
func awaitTool(h *harness, done func() bool) {
	h.t.Helper()
	for !done() {
		if !h.poll() {
			h.t.Fatal("the tool has not the wanted result in time")
		}
	}
}
