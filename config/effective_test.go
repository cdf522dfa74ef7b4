package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/config"
)

// pick returns the settings with these keys as texts, with file names relative to the test's folder.
func pick(all []config.Setting, keys ...string) (found []string) {
	for _, key := range keys {
		for _, s := range all {
			if s.Key == key {
				found = append(found, filepath.ToSlash(s.String()))
			}
		}
	}
	return found
}

// TestOrigins reads the effective values of files with every way to set a key.
func TestOrigins(t *testing.T) {
	t.Setenv("AGE", "2h")
	write(t, map[string]string{
		"parley.yaml": "listen: 127.0.0.1:9000\nretention:\n  runs: 30d\nagents:\n  - {id: echo, kind: echo}\n  - id: model\n    kind: openai\n    model: m\n",
		"workspaces/acme.yaml": `id: acme
platform: slack
agent: echo
slack: {bot_token: xoxb-1-abc, app_token: xapp-1-abc}
policy:
  max_age: ${AGE}
  allow_users: [U06STGBF4Q0]
limits:
  runs_per_user: 60/h
channels:
  - id: C06RY3YBSLE
    agent: model
    policy:
      require_mention: false
`,
	})
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	got := pick(c.Main(), "listen", "store", "shutdown", "retention.runs", "retention.keys", "agents[0].kind", "agents[1].model", "agents[1].timeout", "agents[1].api_key", "agents[0].model")
	if diff := cmp.Diff([]string{
		"listen: 127.0.0.1:9000 (parley.yaml:1)", "store: sqlite:data/parley.db (default)", "shutdown: 10s (default)",
		"retention.runs: 30d (parley.yaml:3)", "retention.keys: 30d (default)",
		"agents[0].kind: echo (parley.yaml:5)", "agents[1].model: m (parley.yaml:8)", "agents[1].timeout: 5m (default)", "agents[1].api_key:  (default)",
	}, got); diff != "" {
		t.Errorf("parley.yaml (-want +got):\n%s", diff)
	}

	keys := []string{"id", "agent", "slack.bot_token", "slack.mode", "policy.require_mention", "policy.max_age", "policy.allow_users", "policy.allow_bots",
		"policy.loop_guard.per", "limits.runs_per_user", "limits.runs_per_workspace", "channels[0].id", "channels[0].agent", "channels[0].policy.require_mention"}
	workspace := []string{
		"id: acme (workspaces/acme.yaml:1)", "agent: echo (workspaces/acme.yaml:3)", "slack.bot_token: [secret] (workspaces/acme.yaml:4)",
		"slack.mode: socket (default)", "policy.require_mention: true (default)", "policy.max_age: ${AGE} (workspaces/acme.yaml:6)",
		"policy.allow_users: [U06STGBF4Q0] (workspaces/acme.yaml:7)", "policy.allow_bots:  (default)", "policy.loop_guard.per: 5m (default)",
		"limits.runs_per_user: 60/1h (workspaces/acme.yaml:9)", "limits.runs_per_workspace: 0 (default)",
	}
	if diff := cmp.Diff(workspace, pick(c.Effective("acme", "C9"), keys...)); diff != "" {
		t.Errorf("another channel (-want +got):\n%s", diff)
	}
	own := []string{"channels[0].id: C06RY3YBSLE (workspaces/acme.yaml:11)", "channels[0].agent: model (workspaces/acme.yaml:12)",
		"channels[0].policy.require_mention: false (workspaces/acme.yaml:14)"}
	if diff := cmp.Diff(append(workspace, own...), pick(c.Effective("acme"), keys...)); diff != "" {
		t.Errorf("the workspace (-want +got):\n%s", diff)
	}
	inherited := append([]string{workspace[0]}, workspace[2:4]...)
	inherited = append(append(inherited, workspace[5:]...), own[1:]...)
	if diff := cmp.Diff(inherited, pick(c.Effective("acme", "T1", "C06RY3YBSLE"), keys...)); diff != "" {
		t.Errorf("a thread in the channel (-want +got):\n%s", diff)
	}

	mention, ok := c.Setting("acme", "policy.require_mention", "C06RY3YBSLE")
	if want := "channels[0].policy.require_mention: false (workspaces/acme.yaml:14)"; !ok || filepath.ToSlash(mention.String()) != want {
		t.Errorf("Setting = %s, %t; want %s", mention, ok, want)
	}
	if s, ok := c.Setting("acme", "policy.colour"); ok || c.Effective("other") != nil {
		t.Errorf("an unknown key is %s", s)
	}
}

// TestOriginsWithoutFiles reads the values of the built-in configuration.
func TestOriginsWithoutFiles(t *testing.T) {
	c := config.Default()
	all := append(c.Main(), c.Effective("local")...)
	for _, s := range all {
		if s.File != "" || s.Line != 0 {
			t.Errorf("%s has an origin", s)
		}
	}
	if got := pick(all, "policy.max_age", "agents[0].id"); len(got) != 2 {
		t.Errorf("the settings lack a key: %v", got)
	}
}

// TestOriginsHideSecrets reads the values of files with a secret at every place that has one.
func TestOriginsHideSecrets(t *testing.T) {
	t.Setenv("CANARY", canary)
	for _, value := range []string{"${CANARY}", canary} {
		write(t, filesWithSecrets(value))
		c, err := config.Load("")
		if err != nil {
			t.Fatal(err)
		}
		all := c.Main()
		for _, w := range c.Workspaces {
			all = append(append(all, c.Effective(w.ID)...), c.Effective(w.ID, "C1")...)
		}
		masked := 0
		for _, s := range all {
			if strings.Contains(s.String(), "canary") {
				t.Errorf("%s shows a secret", s.Key)
			}
			if s.Value == "[secret]" {
				masked++
			}
		}
		if masked < 13 {
			t.Errorf("%d secrets are masked: the test proves too little", masked)
		}
	}
}
