package daemon_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const serverToken = "canary-mcp-40c9b1-7d2e60af"

// toolServer is a server of the protocol with the tools read_thread and weather. It refuses every other token.
type toolServer struct {
	*httptest.Server
	calls atomic.Int64
	place atomic.Value // in a trace: the Traceparent of the last call
}

func newToolServer(t *testing.T) *toolServer {
	type place struct {
		City string `json:"city"`
	}
	s := new(toolServer)
	server := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "weather", Description: "Tells the weather."}, func(_ context.Context, _ *mcp.CallToolRequest, in place) (*mcp.CallToolResult, any, error) {
		s.calls.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("Rain in "+in.City+". ", 10_000)}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "read_thread", Description: "Reads another thing."}, func(_ context.Context, _ *mcp.CallToolRequest, _ place) (*mcp.CallToolResult, any, error) {
		return nil, map[string]string{"thing": "other"}, nil
	})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+serverToken {
			http.Error(w, "no "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		s.place.Store(r.Header.Get("Traceparent"))
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// last returns the last message of a request.
func (r *modelRequest) last() string { return r.messages[len(r.messages)-1].Content }

// TestModelUsesTools: a model reads its thread and posts by Parley's tools, and calls those of another server, each once. A tool
// whose name is taken has its server's before it. A result has a bound.
func TestModelUsesTools(t *testing.T) {
	t.Parallel()
	other := newToolServer(t)
	h := open(t, plan{helper: `tools: {read: channel, post: [acme]}
    mcp: [{url: "` + other.URL + `", token: ` + serverToken + `}]`})
	h.mention("are we on?")
	asked := h.nextRequest()
	host := strings.NewReplacer(".", "_", ":", "_").Replace(strings.TrimPrefix(other.URL, "http://"))
	want := []string{host + "_read_thread", "cancel_schedule", "list_channels", "list_schedules", "list_threads", "post_message", "react", "read_thread", "schedule_message", "search_messages", "weather"}
	slices.Sort(asked.tools)
	slices.Sort(want)
	same(t, asked.tools, want)
	h.answer(asked, callTool("I look.", "read_thread", `{}`))
	asked = h.nextRequest()
	if !strings.Contains(asked.last(), `"sender_id":"slack:`+mara+`"`) {
		t.Errorf("the thread: %s", asked.last())
	}
	h.answer(asked, callTool("", host+"_read_thread", `{"city":"Graz"}`))
	asked = h.nextRequest()
	same(t, asked.last(), `{"thing":"other"}`)
	h.answer(asked, callTool("", "weather", `{"city":"Graz"}`))
	asked = h.nextRequest()
	if n := len(asked.last()); n < 30<<10 || n > 34<<10 || !strings.Contains(asked.last(), "Rain in Graz.") {
		t.Errorf("the result has %d bytes: %.100s", n, asked.last())
	}
	h.answer(asked, callTool("", "post_message", `{"workspace":"acme","channel":"C0OTHER","content":"Rain!"}`))
	asked = h.nextRequest()
	if !strings.Contains(asked.last(), `"state":"`) {
		t.Errorf("the post: %s", asked.last())
	}
	h.answer(asked, callTool("", "find_person", `{"name":"x"}`))
	asked = h.nextRequest()
	if !strings.Contains(asked.last(), "cannot be called here") {
		t.Errorf("a tool that was not offered: %s", asked.last())
	}
	h.answer(asked, replyWith("Done."))
	posts := h.posts(2)
	texts := []string{posts[0].Channel + " " + posts[0].Text, posts[1].Channel + " " + posts[1].Text}
	slices.Sort(texts)
	same(t, texts, []string{room + " Done.", "C0OTHER Rain!"})
	same(t, other.calls.Load(), int64(1))
	if log := h.log.String(); strings.Contains(log, serverToken) {
		t.Error("the log has the token of the server")
	}
}

// TestResultsAreTheModelsAlone: the messages of a run, which all readers of its thread get, tell of the calls of its model without
// what the tools have read and without the arguments. So does what an agent itself writes about its tools.
func TestResultsAreTheModelsAlone(t *testing.T) {
	t.Parallel()
	other := newToolServer(t)
	h := open(t, plan{helper: `tools: {read: workspace}
    mcp: [{url: "` + other.URL + `", token: ` + serverToken + `}]`})
	h.postWeb("my private word is plover")
	asked := h.nextRequest()
	run := asked.run
	h.answer(asked, callTool("", "read_thread", `{"before":4711}`))
	asked = h.nextRequest()
	if !strings.Contains(asked.last(), "plover") {
		t.Fatalf("the model has no result: %s", asked.last())
	}
	h.answer(asked, callTool("", "weather", `{"city":"Graz"}`))
	asked = h.nextRequest()
	if !strings.Contains(asked.last(), "Rain in Graz") {
		t.Fatalf("the model has no result of the other server: %.200s", asked.last())
	}
	h.answer(asked, replyWith("Done."))
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	for _, path := range []string{"/api/v1/runs/" + run + "/events", "/api/v1/agent/runs/" + run + "/updates"} {
		got := h.request(http.MethodGet, path, ownToken, "", "").body
		for _, want := range []string{`"argument_keys":["before"]`, `"argument_keys":["city"]`, `"result_bytes":`} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %s: %s", path, want, got)
			}
		}
		for _, secret := range []string{`"content`, "Rain in", "Graz", "4711"} {
			if strings.Contains(strings.ReplaceAll(got, "my private word is plover", ""), secret) {
				t.Errorf("%s has %q: %s", path, secret, got)
			}
		}
	}
}

// TestMissingToolServer: a server that is away, or that refuses us, costs the run only its tools, and a WARNING says so.
func TestMissingToolServer(t *testing.T) {
	t.Parallel()
	refuses := newToolServer(t)
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	h := open(t, plan{helper: `mcp: [{url: "` + refuses.URL + `", token: wrong-` + serverToken + `}, {url: "` + away.URL + `/mcp"}]`})
	got := decode[struct{ Message struct{ ID string } }](t, h.postWeb("hi").body)
	asked := h.nextRequest()
	same(t, len(asked.tools), 0)
	h.answer(asked, replyWith("Hello."))
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	events := h.request(http.MethodGet, "/api/v1/runs/"+asked.run+"/events", ownToken, "", "").body
	for _, server := range []string{refuses.URL, away.URL} {
		if want := "The tools of " + strings.TrimPrefix(server, "http://") + " are missing in this run"; !strings.Contains(events, want) {
			t.Errorf("no warning %q: %s %v", want, events, got)
		}
	}
	if log := h.log.String(); strings.Contains(log, serverToken) {
		t.Error("the log has the token of the server")
	}
}

// TestModelSeesWhatItsAskerSees: the bounds of a run's token are those of its model.
func TestModelSeesWhatItsAskerSees(t *testing.T) {
	t.Parallel()
	p := plan{helper: `tools: {read: thread}`, files: map[string]string{}}
	withReader(&p)
	h := &holder{later: &later{harness: open(t, p)}}
	h.hears("C0OTHER", "channel", "U0OLIVIA", "elsewhere")
	other := h.threadOf("elsewhere")
	h.mention("read it")
	asked := h.nextRequest()
	slices.Sort(asked.tools)
	same(t, asked.tools, []string{"cancel_schedule", "list_schedules", "read_thread", "schedule_message", "search_messages"})
	h.answer(asked, callTool("", "read_thread", `{"thread_id":"`+other+`"}`))
	asked = h.nextRequest()
	same(t, asked.last(), `{"error":"`+noThread+`"}`)
	h.answer(asked, replyWith("No."))
	h.posts(1)
}
