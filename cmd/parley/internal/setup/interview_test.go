package setup_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/adapters/bluebubbles"
	"parley/config"

	"parley/adapters"
	"parley/adapters/slack/slacktest"
	"parley/cmd/parley/internal/setup"
)

// person answers questions from a list, and notes what is asked and said.
type person struct {
	t       *testing.T
	answers []string
	heard   []string
}

func (p *person) next(question string) string {
	p.t.Helper()
	p.heard = append(p.heard, question)
	if len(p.answers) == 0 {
		p.t.Fatalf("one question too many: %q", p.heard)
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	return answer
}

// Choose implements setup.Asker: the answer begins the title of an option.
func (p *person) Choose(_ context.Context, title string, options []string) (int, error) {
	p.t.Helper()
	answer := p.next(title)
	for i, o := range options {
		if strings.HasPrefix(o, answer) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is not in %q", answer, options)
}

// Ask implements setup.Asker.
func (p *person) Ask(_ context.Context, f adapters.Field) (string, error) {
	p.t.Helper()
	return p.next(f.Title), nil
}

// Say implements setup.Asker.
func (p *person) Say(text string) { p.heard = append(p.heard, text) }

// TestInterview gives a wrong token first: the person hears so at once, and answers again.
func TestInterview(t *testing.T) {
	t.Parallel()
	server, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	p := &person{t: t, answers: []string{"Slack", slacktest.AppToken, "xoxb-wrong", "Answer again", slacktest.AppToken, slacktest.Token, "Later"}}
	i := &setup.Interview{Asker: p, Given: func(_ string, f adapters.Field) string {
		if f.Key == "api_url" {
			return server.URL()
		}
		return ""
	}}
	var plan setup.Plan
	if err := i.Complete(t.Context(), &plan, setup.Agents(nil)); err != nil {
		t.Fatalf("%v after %q", err, p.heard)
	}
	if heard := strings.Join(p.heard, "\n"); !strings.Contains(heard, "slack.bot_token: ") || strings.Contains(heard, "xoxb-wrong") {
		t.Error(heard)
	}
	if plan.Workspace != "slack" || plan.Platform.Answers["bot_token"] != slacktest.Token || plan.Agent.Name != "echo" || len(p.answers) > 0 {
		t.Errorf("%+v, %q", plan, p.answers)
	}
}

// TestFilesQuote writes values that YAML or the configuration would read as something else.
func TestFilesQuote(t *testing.T) {
	t.Parallel()
	agents := setup.Agents([]string{"m"})
	choice, _ := setup.Find(agents, "openai")
	plan := setup.Plan{Agent: setup.Part{Choice: choice, Answers: map[string]string{"base_url": "http://127.0.0.1:1/v1", "model": `a "b" ${C}: #`, "api_key": "k"}}}
	files, err := plan.Files()
	want := "\n# Who answers. The first agent also answers parley chat.\nagents:\n  - id: assistant\n    kind: openai\n    base_url: \"http://127.0.0.1:1/v1\"\n    api_key: \"${file:secrets/assistant-api_key}\"\n    model: \"a \\\"b\\\" $${C}: #\"\n"
	if err != nil || len(files) != 2 || !strings.HasSuffix(files[0].Content, want) || !strings.HasPrefix(files[0].Content, "# yaml-language-server: $schema=parley.schema.json\n") || files[1].Content != "k\n" {
		t.Errorf("%+v", files)
	}
}

// TestAPersonAddsAWorkspace: an interview about a configuration offers its agents, and a test that succeeds says so.
func TestAPersonAddsAWorkspace(t *testing.T) {
	t.Parallel()
	server, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "parley.yaml"), []byte("agents: [{id: helper, kind: echo}]\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	base, err := setup.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, answers: []string{"Slack", slacktest.AppToken, slacktest.Token, "helper"}}
	i := &setup.Interview{Asker: p, Given: func(_ string, f adapters.Field) string {
		return map[string]string{"api_url": server.URL()}[f.Key]
	}}
	plan := setup.Plan{Onto: base}
	if err := i.Complete(t.Context(), &plan, setup.Agents(nil)); err != nil {
		t.Fatalf("%v after %q", err, p.heard)
	}
	if heard := strings.Join(p.heard, "\n"); !strings.Contains(heard, "✓ Slack") {
		t.Error(heard)
	}
	paths, err := plan.Write(dir, false)
	c, loadErr := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil || loadErr != nil || len(paths) != 3 || c.Workspaces[0].ID != "slack" || c.Workspaces[0].Agent != "helper" {
		t.Errorf("%v %v %q", err, loadErr, paths)
	}
}

// TestAnUnreachablePlatformIsAskedAbout: the person decides whether the answers stay.
func TestAnUnreachablePlatformIsAskedAbout(t *testing.T) {
	t.Parallel()
	p := &person{t: t, answers: []string{"iMessage", "http://127.0.0.1:1", "pass", "parley, bot", "+15555550142,nora@example.org", "http://192.168.1.20:8484", "0.0.0.0:8484", "Keep the answers", "Later"}}
	i := &setup.Interview{Asker: p, Given: func(string, adapters.Field) string { return "" }}
	var plan setup.Plan
	if err := i.Complete(t.Context(), &plan, setup.Agents(nil)); err != nil {
		t.Fatalf("%v after %q", err, p.heard)
	}
	dir := t.TempDir()
	if _, err := plan.Write(dir, false); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w := c.Workspaces[0]
	if wake := w.Config.(*bluebubbles.Config).Wake; strings.Join(wake, "|") != "parley|bot" || len(w.Policy.AllowUsers) != 2 {
		t.Errorf("wake %q, %+v", wake, w.Policy)
	}
	if c.PublicURL != "http://192.168.1.20:8484" || c.Listen != "0.0.0.0:8484" {
		t.Errorf("the server calls %q, and the daemon listens on %q", c.PublicURL, c.Listen)
	}
}

// TestAConfigurationKeepsItsAddress: a platform's questions about parley.yaml are those that the file has no answer to.
func TestAConfigurationKeepsItsAddress(t *testing.T) {
	t.Parallel()
	for _, agent := range []string{"helper", "Later"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "parley.yaml"), []byte("# ours\nlisten: 127.0.0.1:9000\nagents: [{id: helper, kind: echo}]"), 0o600); err != nil {
			t.Fatal(err)
		}
		base, err := setup.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		answers := []string{"iMessage", "http://127.0.0.1:1", "pass", "parley", "+15555550142", "http://192.168.1.20:8484", "Keep the answers", agent}
		p := &person{t: t, answers: answers}
		i := &setup.Interview{Asker: p, Given: func(string, adapters.Field) string { return "" }}
		plan := setup.Plan{Onto: base}
		if err := i.Complete(t.Context(), &plan, setup.Agents(nil)); err != nil {
			t.Fatalf("%v after %q", err, p.heard)
		}
		if _, err := plan.Write(dir, false); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(filepath.Join(dir, "parley.yaml"))
		if err != nil || c.Listen != "127.0.0.1:9000" || c.PublicURL != "http://192.168.1.20:8484" {
			t.Errorf("%v: listen %q, public_url %q", err, c.Listen, c.PublicURL)
		}
	}
}
