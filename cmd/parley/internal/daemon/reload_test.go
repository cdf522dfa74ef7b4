package daemon_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/daemon"
	"parley/config"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// change writes a file of the configuration and reloads.
func (h *harness) change(name, content string) {
	h.t.Helper()
	write(h.t, filepath.Join(h.dir, name), h.places.Replace(content))
	h.reload()
}

// remove removes a file of the configuration, reloads, and returns the file's content.
func (h *harness) remove(name string) string {
	h.t.Helper()
	file := filepath.Join(h.dir, name)
	content, err := os.ReadFile(file)
	if err == nil {
		err = os.Remove(file)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.reload()
	return string(content)
}

// reload reloads the configuration, and waits until the daemon has applied or refused it.
func (h *harness) reload() {
	h.t.Helper()
	select {
	case <-h.daemon.Reload():
	case <-h.ctx.Done():
		h.t.Fatalf("the reload did not end\n%s", h.log)
	}
}

const branch = `
id: branch
platform: slack
agent: echo
slack: {mode: http, bot_token: xoxb-branch, signing_secret: branch-secret, api_url: "SLACK", post_rate: 0}
`

// toBranch delivers a body to the workspace branch.
func (h *harness) toBranch(body []byte) int {
	h.t.Helper()
	return h.send(slacktest.NewRequest(h.ctx, h.url+"/hooks/slack/branch", "branch-secret", time.Now(), body)).status
}

func TestReloadAddsAndRemovesWorkspace(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	body := h.newMessage("<@U0BOT> hello").Mention()
	if got := h.toBranch(body); got != http.StatusUnauthorized {
		t.Errorf("before the workspace exists: %d", got)
	}
	team, err := slacktest.Start(slacktest.Options{Token: "xoxb-branch"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = team.Close() })
	h.change("workspaces/branch.yaml", strings.ReplaceAll(branch, "SLACK", team.URL()))
	if got := h.toBranch(body); got != http.StatusOK {
		t.Errorf("with the workspace: %d\n%s", got, h.log)
	}
	h.awaitMetric(`parley_runs_total{agent="echo",outcome="answered"}`, 1)
	if err := os.Remove(filepath.Join(h.dir, "workspaces/branch.yaml")); err != nil {
		t.Fatal(err)
	}
	h.reload()
	if got := h.toBranch(body); got != http.StatusUnauthorized {
		t.Errorf("after its removal: %d", got)
	}
	h.mention("are you still there?") // the other workspace goes on
	h.answerNext(replyWith("Yes."))
	h.posts(1)
}

// TestTheTurnsOfARemovedWorkspaceWait: a run that goes on ends, and no further one begins until
// the workspace is back. Each message is a turn of its own, as its settings say.
func TestTheTurnsOfARemovedWorkspaceWait(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	first := h.mention("one")
	asked := h.nextRequest()
	for _, text := range []string{"two", "three"} {
		m := h.newMessage("<@U0BOT> " + text)
		m.ThreadTS = first.TS
		h.accept(m.Mention())
	}
	h.awaitMetric(envelopesMetric("message", "stored", "mention"), 3)
	content := h.remove("workspaces/acme.yaml")
	h.answer(asked, replyWith("One."))
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 1)
	h.change("workspaces/acme.yaml", content)
	for _, text := range []string{"two", "three"} {
		a := h.answerNext(replyWith("Fine."))
		if last := a.messages[len(a.messages)-1]; !strings.HasSuffix(last.Content, text) {
			t.Errorf("the agent was asked %q, want %q", last.Content, text)
		}
	}
	h.awaitMetric(`parley_runs_total{agent="helper",outcome="answered"}`, 3)
	if got := h.metric(`parley_runs_total{agent="helper",outcome="retried"}`); got != 0 {
		t.Errorf("%v attempts failed\n%s", got, h.log)
	}
}

func TestReloadOfFaultyFile(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.change("workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: nobody\n")
	if log := h.log.String(); !strings.Contains(log, "acme.yaml:3: agent:") || !strings.Contains(log, "slack") {
		t.Errorf("%s", log)
	}
	h.mention("are you still there?")
	h.answerNext(replyWith("Yes."))
	h.posts(1)
}

func TestReloadOfPolicy(t *testing.T) {
	t.Parallel()
	p := plan{}
	h := open(t, p)
	h.accept(h.newMessage("to whom it may concern").Event())
	h.awaitMetric(envelopesMetric("message", "stored", "no-mention"), 1)
	p.dir, p.acme = h.dir, "policy: {require_mention: false}"
	p.write(t, h.places)
	h.reload()
	h.accept(h.newMessage("to whom it may concern").Event())
	h.answerNext(replyWith("Me."))
	h.posts(1)
	p.acme = "policy: {allow_users: []}"
	p.write(t, h.places)
	h.reload()
	h.mention("hello")
	h.awaitMetric(envelopesMetric("message", "ignored", "user-refused"), 1)
}

func TestReloadOfRestartSettings(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	raw, err := os.ReadFile(filepath.Join(h.dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	added := ""
	for i, line := range []string{"store: sqlite:data/another.db\n", "attachments: {max_bytes: 1MiB}\n", "tracing: {otlp: 'http://127.0.0.1:1'}\n"} {
		added += line
		h.change("parley.yaml", string(raw)+added)
		if h.warnings("restart") != i+1 {
			t.Errorf("%s: %s", line, h.log)
		}
	}
	h.mention("are you still there?")
	h.answerNext(replyWith("Yes."))
	h.posts(1)
}

// heirAdapter is an adapter that reports the adapter that it inherits from.
type heirAdapter struct {
	adapters.Adapter
	inherits chan adapters.Adapter
}

func (a *heirAdapter) Inherit(old adapters.Adapter) { a.inherits <- old }

// TestReloadHandsOverPaces proves that a changed adapter inherits from the previous one.
func TestReloadHandsOverPaces(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	if err := h.stop(); err != nil {
		t.Fatal(err)
	}
	var made []adapters.Adapter
	inherits := make(chan adapters.Adapter, 1)
	platforms := withSlack(func(workspace string, c *slack.Config) adapters.Adapter {
		made = append(made, &heirAdapter{slack.New(workspace, *c), inherits})
		return made[len(made)-1]
	})
	load := func() (*config.Config, error) { return config.Load(filepath.Join(h.dir, "parley.yaml")) }
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.run(daemon.Options{Config: c, Load: load, Now: h.clock.now, Platforms: platforms}); err != nil {
		t.Fatal(err)
	}
	p := plan{dir: h.dir, slack: "timeout: 6s"}
	p.write(t, h.places)
	h.reload()
	select {
	case old := <-inherits:
		if len(made) != 2 || old != made[0] {
			t.Errorf("%d adapters", len(made))
		}
	default:
		t.Error("the new adapter does not inherit")
	}
}

// failingEngine is an embedded store on which every statement that contains a text fails.
type failingEngine struct {
	storage.Engine
	text atomic.Pointer[string] // nil if every statement succeeds
	// probes is the number of readiness checks, and failures that of the failed statements.
	probes, failures atomic.Int64
}

type failingTx struct {
	storage.Tx
	engine *failingEngine
}

func (e *failingEngine) Write(ctx context.Context, o storage.WriteOptions, fn func(storage.Tx) error) error {
	return e.Engine.Write(ctx, o, func(tx storage.Tx) error { return fn(failingTx{tx, e}) })
}

func (e *failingEngine) ReadOne(ctx context.Context, fn func(storage.Tx) error) error {
	return e.Engine.ReadOne(ctx, func(tx storage.Tx) error { return fn(failingTx{tx, e}) })
}

func (e *failingEngine) check(query string) error {
	if strings.HasPrefix(query, "DELETE FROM retention_progress WHERE task") {
		e.probes.Add(1)
	}
	if text := e.text.Load(); text != nil && strings.Contains(query, *text) {
		e.failures.Add(1)
		return fmt.Errorf("%w: the disk is full", storage.ErrUnavailable)
	}
	return nil
}

func (t failingTx) Later(none error, dest []any, query string, args ...any) error {
	if err := t.engine.check(query); err != nil {
		return err
	}
	return t.Tx.Later(none, dest, query, args...)
}

func (t failingTx) Rows(each func(scan func(...any) error) error, query string, args ...any) error {
	if err := t.engine.check(query); err != nil {
		return err
	}
	return t.Tx.Rows(each, query, args...)
}

// openFailing returns a daemon on a failingEngine. The returned function sets the text of the
// statements that fail from now on.
func openFailing(t *testing.T) (h *harness, fail func(text string)) {
	t.Helper()
	h, e := openCounting(t)
	return h, func(text string) { e.text.Store(&text) }
}

// openCounting returns a daemon on a failingEngine that does not fail.
func openCounting(t *testing.T) (*harness, *failingEngine) {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(journaltest.Dir(t), "parley.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := &failingEngine{Engine: engine}
	return open(t, plan{engine: e}), e
}

// TestReloadWithoutOrphansSearch proves that a reload starts the changed adapter if the search
// for the turns of removed agents fails.
func TestReloadWithoutOrphansSearch(t *testing.T) {
	t.Parallel()
	h, fail := openFailing(t)
	fail("SELECT DISTINCT agent")
	for _, timeout := range []string{"6s", "7s"} {
		p := plan{dir: h.dir, slack: "timeout: " + timeout}
		p.write(t, h.places)
		h.reload()
		for !strings.Contains(h.get("/readyz").body, `"acme":{"state":"up"`) {
			if !h.poll() {
				t.Fatalf("the adapter with the timeout %s does not run\n%s", timeout, h.log)
			}
		}
	}
}

// TestARemovedAgentHasNoTurns: while the turns of a removed agent were not given to another one, nobody takes them. They are taken once
// the agent is back.
func TestARemovedAgentHasNoTurns(t *testing.T) {
	t.Parallel()
	h, fail := openFailing(t)
	team, err := slacktest.Start(slacktest.Options{Token: "xoxb-branch"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = team.Close() })
	waiting := strings.ReplaceAll(branch, "SLACK", team.URL()) + "turns: {coalesce: 1h, coalesce_max: 1h}\n"
	h.change("workspaces/branch.yaml", waiting)
	if got := h.toBranch(h.newMessage("<@U0BOT> hello").Mention()); got != http.StatusOK {
		t.Fatalf("%d\n%s", got, h.log)
	}
	h.awaitMetric(`parley_envelopes_total{disposition="stored",kind="message",reason="mention",workspace="branch"}`, 1)
	agents, err := os.ReadFile(filepath.Join(h.dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fail("SELECT DISTINCT agent")
	write(t, filepath.Join(h.dir, "workspaces/branch.yaml"), strings.Replace(waiting, "agent: echo", "agent: helper", 1))
	h.change("parley.yaml", strings.Replace(string(agents), "- {id: echo, kind: echo}", "", 1))
	same(t, []bool{h.daemon.HasTurns("echo"), h.daemon.HasTurns("helper")}, []bool{false, true})
	h.clock.advance(2 * time.Hour)
	h.change("parley.yaml", string(agents))
	same(t, h.daemon.HasTurns("echo"), true)
	h.awaitMetric(`parley_runs_total{agent="echo",outcome="answered"}`, 1)
}

// TestFailedReloadChangesNothing proves that the old workspaces go on if the store cannot
// record the new ones.
func TestFailedReloadChangesNothing(t *testing.T) {
	t.Parallel()
	h, fail := openFailing(t)
	fail("INSERT INTO workspaces")
	if err := os.Remove(filepath.Join(h.dir, "workspaces/ours.yaml")); err != nil {
		t.Fatal(err)
	}
	h.change("workspaces/branch.yaml", branch)
	h.postWeb("are you still there?")
	h.answerNext(replyWith("Yes."))
	if got := h.toBranch(h.newMessage("<@U0BOT> hello").Mention()); got != http.StatusUnauthorized {
		t.Errorf("a new workspace: %d", got)
	}
}

// TestReloadAtStop proves that a reload during a stop is no error for the operator.
func TestReloadAtStop(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.reload() // it ends after the daemon's start
	h.daemon.ReloadAtStop(h.ctx)
	if strings.Contains(h.log.String(), `"level":"ERROR"`) {
		t.Errorf("%s", h.log)
	}
}
