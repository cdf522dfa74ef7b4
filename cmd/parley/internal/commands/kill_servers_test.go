package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/adapters/slack/slacktest"
)

// TestKilledBetweenCalls kills the daemon at each request of a run to its model. The model calls a tool of another server, posts by
// Parley's tool, and answers: each call is made once, each post is in Slack once, and each question has one answer.
func TestKilledBetweenCalls(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	counted := map[string]int{} // the calls of the other server, by question
	server := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
	type question struct {
		Question string `json:"question"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "count", Description: "Counts."}, func(_ context.Context, _ *mcp.CallToolRequest, in question) (*mcp.CallToolResult, any, error) {
		mu.Lock()
		defer mu.Unlock()
		counted[in.Question]++
		return nil, map[string]int{"counted": counted[in.Question]}, nil
	})
	other := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer other.Close()

	left, kill := 0, make(chan struct{}, 1) // the requests until the daemon shall die
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked teamRequest
		if json.NewDecoder(r.Body).Decode(&asked) != nil {
			return // the daemon died during the request
		}
		mu.Lock()
		left--
		dies := left == 0
		mu.Unlock()
		if dies {
			kill <- struct{}{}
			<-r.Context().Done()
			return
		}
		name, steps := "", 0
		for _, said := range asked.Messages {
			if found := questionText.FindStringSubmatch(said.Content); found != nil && said.Role == "user" {
				name, steps = found[1], 0
			}
			if said.Role == "assistant" && len(said.ToolCalls) > 0 {
				steps++
			}
		}
		switch steps {
		case 0:
			sayCalls(w, "", toolCall{"count", map[string]any{"question": name}})
		case 1:
			sayCalls(w, "", toolCall{"post_message", map[string]any{"workspace": "acme", "channel": "C0GARDEN", "content": "post " + name}})
		default:
			sayCalls(w, "answer "+name)
		}
	}))
	defer model.Close()
	slack, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slack.Close() }()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nconsole: {listen: \"\"}\nagents: [{id: lead, kind: openai, model: m, base_url: \""+model.URL+
		"/v1\", tools: {post: [acme]}, mcp: [{url: \""+other.URL+"\"}]}]\n")
	write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: lead\nslack: {mode: http, bot_token: "+slacktest.Token+
		", signing_secret: kill-signing-5f0d1c, api_url: \""+slack.URL()+"\", post_rate: 0, preview: off, working: off, timeout: 3s}\n")
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: lead\nturns: {coalesce: 0s}\nweb: {tokens: [{id: a, token: "+webToken+", name: c}]}\n")
	daemon := start(t, dir, os.Args[0], "run")
	address := daemon.address()
	kills := 6
	if testing.Short() {
		kills = 2
	}
	for k := range kills {
		name, thread := fmt.Sprint(100+k), fmt.Sprintf("6ba7b81%d-9dad-41d1-80b4-00c04fd430c8", k)
		mu.Lock()
		left = 1 + k%3
		mu.Unlock()
		if status, raw := httpCall(t, http.MethodPost, address+"/api/v1/workspaces/ours/messages", webToken, fmt.Sprintf(`{"thread_id":%q,"content":"question %s"}`, thread, name), ""); status != http.StatusAccepted {
			t.Fatal(status, raw)
		}
		<-kill
		if err := daemon.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = daemon.cmd.Wait() // killed by the test
		daemon = start(t, dir, os.Args[0], "run")
		address = daemon.address()
		for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(50 * time.Millisecond) {
			_, raw := httpCall(t, http.MethodGet, address+"/api/v1/workspaces/ours/threads/"+thread+"/messages?limit=200", webToken, "", "")
			if n := strings.Count(raw, `"answer `+name+`"`); n == 1 {
				break
			} else if n > 1 || time.Now().After(deadline) {
				t.Fatalf("kill %d: %s", k, raw)
			}
		}
	}
	posts := slack.Posts()
	for deadline := time.Now().Add(time.Minute); len(posts) < kills && time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		posts = slack.Posts()
	}
	seen := map[string]int{}
	for _, p := range posts {
		seen[p.Text]++
	}
	mu.Lock()
	defer mu.Unlock()
	for k := range kills {
		name := fmt.Sprint(100 + k)
		if counted[name] != 1 || seen["post "+name] != 1 {
			t.Errorf("question %s: %d calls, %d posts of %v", name, counted[name], seen["post "+name], seen)
		}
	}
}
