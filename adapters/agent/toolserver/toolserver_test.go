package toolserver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/adapters/agent"
	"parley/adapters/agent/toolserver"
	"parley/assembly/runinput"
	"parley/config/secret"
)

const token = "canary-mcp-40c9b1-7d2e60af"

// fake is a server of the protocol whose one tool answers with a result of the test.
type fake struct {
	*httptest.Server
	handler atomic.Pointer[mcp.StreamableHTTPHandler]
	result  func(ctx context.Context) (*mcp.CallToolResult, error)
	calls   atomic.Int64
	lists   atomic.Int64
	keys    chan any
}

func start(t *testing.T) *fake {
	f := &fake{keys: make(chan any, 16), result: func(context.Context) (*mcp.CallToolResult, error) { return text("fine"), nil }}
	f.forget()
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "no "+r.Header.Get("Authorization"), http.StatusForbidden)
			return
		}
		f.handler.Load().ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// forget ends all sessions, as a restart of the server does.
func (f *fake) forget() {
	server := mcp.NewServer(&mcp.Implementation{Name: "fake", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "look", Description: "Looks.", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		f.calls.Add(1)
		f.keys <- r.Params.Meta["parley/call"]
		return f.result(ctx)
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				f.lists.Add(1)
			}
			return next(ctx, method, r)
		}
	})
	f.handler.Store(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
}

func text(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// client returns a client whose clock stands until the test moves it.
func (f *fake) client(t *testing.T, s agent.ToolServer) (c *toolserver.Client, move func(time.Duration)) {
	if s.URL == "" {
		s.URL = f.URL + "/canary-path-51d2e84b"
	}
	if s.Token.IsZero() {
		s.Token = secret.New(token)
	}
	now := time.Unix(1_700_000_000, 0)
	c = toolserver.New(s, "1", func() time.Time { return now })
	t.Cleanup(c.Close)
	return c, func(d time.Duration) { now = now.Add(d) }
}

var look = runinput.Call{ID: "1", Name: "look", Arguments: `{"at":1}`}

// TestToolsAreListedOnceAMinute, also after the server has forgotten the session.
func TestToolsAreListedOnceAMinute(t *testing.T) {
	f := start(t)
	c, move := f.client(t, agent.ToolServer{})
	for range 2 {
		tools, _, err := c.Tools(t.Context())
		if err != nil || len(tools) != 1 || tools[0].Name != "look" || tools[0].Description != "Looks." || string(tools[0].Parameters) != `{"type":"object"}` {
			t.Fatalf("%+v %v", tools, err)
		}
	}
	if n := f.lists.Load(); n != 1 {
		t.Errorf("%d lists", n)
	}
	f.forget()
	move(2 * time.Minute)
	if tools, _, err := c.Tools(t.Context()); err != nil || len(tools) != 1 || f.lists.Load() != 2 {
		t.Errorf("%+v %v", tools, err)
	}
}

// TestCallIsMadeOnce, with its key, also after the server has forgotten the session.
func TestCallIsMadeOnce(t *testing.T) {
	f := start(t)
	c, _ := f.client(t, agent.ToolServer{})
	for range 2 {
		if got := c.Call(t.Context(), "run/step/0/0", look); got != `{"text":"fine"}` {
			t.Error(got)
		}
		if key := <-f.keys; key != "run/step/0/0" {
			t.Errorf("the key is %v", key)
		}
		f.forget()
	}
	if n := f.calls.Load(); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// TestResults checks the JSON of each form of a result.
func TestResults(t *testing.T) {
	f := start(t)
	c, _ := f.client(t, agent.ToolServer{})
	for name, r := range map[string]struct {
		result *mcp.CallToolResult
		want   string
	}{
		"words":      {text("a <b>"), `{"text":"a <b>"}`},
		"JSON":       {text(`{"a":1}`), `{"a":1}`},
		"structured": {&mcp.CallToolResult{StructuredContent: map[string]int{"a": 1}}, `{"a":1}`},
		"an image":   {&mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{MIMEType: "image/png", Data: []byte("x")}}}, `{"text":"[image image/png]"}`},
		"a fault":    {&mcp.CallToolResult{IsError: true, Content: text("no such city").Content}, `{"error":"no such city"}`},
		"nothing":    {&mcp.CallToolResult{}, `{"text":""}`},
	} {
		f.result = func(context.Context) (*mcp.CallToolResult, error) { return r.result, nil }
		if got := c.Call(t.Context(), "k", look); got != r.want {
			t.Errorf("%s: %s, want %s", name, got, r.want)
		}
		<-f.keys
	}
	f.result = func(context.Context) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("ü", toolserver.MaxResult)), nil
	}
	if got := c.Call(t.Context(), "k", look); len(got) > toolserver.MaxResult+100 || !strings.Contains(got, "cut") {
		t.Errorf("a long result has %d bytes", len(got))
	}
}

// TestServerFails: a server that does not answer is the result of a call, and its list is not asked for again at once. No secret is
// in the words.
func TestServerFails(t *testing.T) {
	f := start(t)
	f.result = func(ctx context.Context) (*mcp.CallToolResult, error) { <-ctx.Done(); return nil, ctx.Err() }
	slow, _ := f.client(t, agent.ToolServer{Timeout: 300 * time.Millisecond})
	if got := slow.Call(t.Context(), "k", look); !strings.Contains(got, "no answer within 300ms") {
		t.Error(got)
	}
	wrong, move := f.client(t, agent.ToolServer{Token: secret.New("wrong-" + token)})
	for range 2 {
		_, _, err := wrong.Tools(t.Context())
		if err == nil || strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "canary-path") {
			t.Error(err)
		}
		got := wrong.Call(t.Context(), "k", look)
		if !strings.Contains(got, "did not answer the call") || strings.Contains(got, token) || strings.Contains(got, "canary-path") {
			t.Error(got)
		}
	}
	f.Close()
	away, _ := f.client(t, agent.ToolServer{})
	if _, _, err := away.Tools(t.Context()); err == nil || strings.Contains(err.Error(), "canary-path") {
		t.Error(err)
	}
	_ = move
}
