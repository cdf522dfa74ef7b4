package daemon_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"parley/config"
)

// awaitHello waits for the text about a workspace.
func (h *harness) awaitHello(workspace string) string {
	h.t.Helper()
	for {
		select {
		case text := <-h.hello:
			if strings.Contains(text, "workspace "+workspace+":") {
				return text
			}
		case <-h.ctx.Done():
			h.t.Fatalf("there is no text about %s\n%s", workspace, h.log)
		}
	}
}

func TestHelloNamesPlatform(t *testing.T) {
	t.Parallel()
	h := open(t, plan{hello: true})
	if text := h.awaitHello("acme"); !strings.Contains(text, "mention the bot in Slack") {
		t.Error(text)
	}
}

func TestHelloNamesAPI(t *testing.T) {
	t.Parallel()
	h := open(t, plan{hello: true})
	text := h.awaitHello("ours")
	if !strings.Contains(text, h.url+"/api/v1/workspaces/ours/messages") || strings.Contains(text, ownToken) {
		t.Error(text)
	}
}

func TestHelloNamesTheConsole(t *testing.T) {
	t.Parallel()
	h := open(t, plan{without: true, hello: true})
	for {
		select {
		case text := <-h.hello:
			if strings.Contains(text, "parley console") && strings.Contains(text, "http://127.0.0.1:") {
				return
			}
		case <-h.ctx.Done():
			t.Fatal("no text names the console")
		}
	}
}

// TestHelloCommands makes the requests of the commands for the local workspace.
func TestHelloCommands(t *testing.T) {
	t.Parallel()
	h := open(t, plan{without: true, hello: true})
	text := h.awaitHello(config.Default().Workspaces[0].ID)
	urls := regexp.MustCompile(`http://\S+`).FindAllString(text, -1)
	body := regexp.MustCompile(`-d '(.*)'`).FindStringSubmatch(text)
	if len(urls) != 2 || body == nil || !strings.HasPrefix(text, "Talk to the agent, in another terminal: parley chat\n") || strings.Count(text, "'Authorization: Bearer "+h.local()+"'") != 2 {
		t.Fatal(text)
	}
	request, err := http.NewRequestWithContext(h.ctx, http.MethodPost, urls[0], strings.NewReader(body[1]))
	if err == nil {
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+h.local())
	}
	if got := h.send(request, err); got.status != http.StatusAccepted {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := h.request(http.MethodGet, strings.TrimPrefix(urls[1], h.url), h.local(), "", ""); got.status != http.StatusOK || !strings.Contains(got.body, `"hello"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestHelloIsOnce for a workspace, also after a reload.
func TestHelloIsOnce(t *testing.T) {
	t.Parallel()
	h := open(t, plan{hello: true})
	if text := h.awaitHello("ours"); !strings.Contains(text, h.url+"/chat in a browser") {
		t.Error(text)
	}
	h.reload()
	h.change("workspaces/more.yaml", "id: more\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: canary-more-5c1f07-93d2ae60, name: A}]}\n")
	for done := false; !done; {
		select {
		case text := <-h.hello:
			if strings.Contains(text, "workspace ours:") {
				t.Error("the text about ours is repeated")
			}
			done = strings.Contains(text, "workspace more:")
		case <-h.ctx.Done():
			t.Fatal("there is no text about more")
		}
	}
}
