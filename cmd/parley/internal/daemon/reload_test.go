package daemon_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

// change writes a file of the configuration and has it read.
func (h *house) change(name, content string) {
	h.t.Helper()
	write(h.t, filepath.Join(h.dir, name), h.places.Replace(content))
	h.reload()
}

// reload has the configuration read again, and waits for what is logged of it.
func (h *house) reload() {
	h.t.Helper()
	told := func() int { return strings.Count(h.log.String(), `"msg":"the configuration `) }
	before := told()
	h.daemon.Reload()
	for told() == before {
		if !h.again() {
			h.t.Fatalf("nothing was reloaded\n%s", h.log)
		}
	}
}

const branch = `
id: branch
platform: slack
agent: echo
slack: {mode: http, bot_token: xoxb-branch, signing_secret: branch-secret, api_url: "SLACK", post_rate: 0}
`

// toBranch delivers a body to the workspace branch.
func (h *house) toBranch(body []byte) int {
	h.t.Helper()
	return h.send(slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/branch", "branch-secret", time.Now(), body)).status
}

func TestWorkspacesComeAndGo(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	body := h.said("<@U0BOT> hello").Mention()
	if got := h.toBranch(body); got != http.StatusNotFound {
		t.Errorf("before: %d", got)
	}
	h.change("workspaces/branch.yaml", branch)
	if got := h.toBranch(body); got != http.StatusOK {
		t.Errorf("with it: %d\n%s", got, h.log)
	}
	h.awaitMetric(`parley_runs_total{agent="echo",outcome="answered"}`, 1)
	if err := os.Remove(filepath.Join(h.dir, "workspaces/branch.yaml")); err != nil {
		t.Fatal(err)
	}
	h.reload()
	if got := h.toBranch(body); got != http.StatusNotFound {
		t.Errorf("after: %d", got)
	}
	h.mention("are you still there?") // the other one has not noticed
	h.asks(says("Yes."))
	h.posts(1)
}

func TestAFaultyFileKeepsTheLastGoodOne(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.change("workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: nobody\n")
	if log := h.log.String(); !strings.Contains(log, "acme.yaml:3: agent:") || !strings.Contains(log, "slack") {
		t.Errorf("%s", log)
	}
	h.mention("are you still there?")
	h.asks(says("Yes."))
	h.posts(1)
}

func TestAPolicyTakesEffect(t *testing.T) {
	t.Parallel()
	p := plan{}
	h := open(t, p)
	h.accept(h.said("to whom it may concern").Event())
	h.awaitMetric(settled("message", "stored", "no-mention"), 1)
	p.dir, p.acme = h.dir, "policy: {require_mention: false}"
	p.write(t, h.places)
	h.reload()
	h.accept(h.said("to whom it may concern").Event())
	h.asks(says("Me."))
	h.posts(1)
	p.acme = "policy: {allow_users: []}"
	p.write(t, h.places)
	h.reload()
	h.mention("hello")
	h.awaitMetric(settled("message", "ignored", "user-refused"), 1)
}

func TestWhatNeedsARestartSaysSo(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	raw, err := os.ReadFile(filepath.Join(h.dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	added := ""
	for i, line := range []string{"store: sqlite:data/another.db\n", "attachments: {max_bytes: 1MiB}\n"} {
		added += line
		h.change("parley.yaml", string(raw)+added)
		if strings.Count(h.log.String(), "listen, store and attachments take effect at the next start") != i+1 {
			t.Errorf("%s: %s", line, h.log)
		}
	}
	h.mention("are you still there?")
	h.asks(says("Yes."))
	h.posts(1)
}
