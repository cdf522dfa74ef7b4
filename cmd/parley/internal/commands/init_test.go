package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/adapters/slack"
	"parley/adapters/slack/slacktest"
	"parley/config"
)

// TestInitForScripts makes a configuration with a fake Slack and a fake model. It writes nothing if one of
// them refuses an answer, and replaces nothing without --force.
func TestInitForScripts(t *testing.T) {
	t.Parallel()
	server, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	dir := t.TempDir()
	write(t, dir, "app", slacktest.AppToken+"\n")
	write(t, dir, "bot", slacktest.Token+"\n")
	write(t, dir, "key", modelKey)
	initialise := func(more ...string) output {
		args := []string{"init", "--non-interactive", "--dir", "made", "--platform", "slack", "--workspace", "acme", "--agent", "openai",
			"--set", "slack.api_url=" + server.URL(), "--set", "openai.base_url=" + modelList(t).URL + "/v1", "--set", "openai.model=m", "--secret", "slack.app_token=app"}
		return parley(t, dir, append(args, more...)...)
	}
	nothing := func(got output, words string) {
		t.Helper()
		if _, err := os.Stat(filepath.Join(dir, "made")); got.status != 1 || !strings.Contains(got.stderr, words) || err == nil {
			t.Errorf("%+v, %v", got, err)
		}
	}
	nothing(initialise("--secret", "openai.api_key=key"), "slack.bot_token=FILE")
	nothing(initialise("--secret", "slack.bot_token=app", "--secret", "openai.api_key=key"), "slack.bot_token: ")
	nothing(initialise("--secret", "slack.bot_token=bot", "--secret", "openai.api_key=bot"), "agents[0].api_key: ")
	if got := initialise("--secret", "slack.bot_token=bot", "--secret", "slack.token=bot"); got.status != 2 {
		t.Errorf("%+v", got)
	}

	got := initialise("--secret", "slack.bot_token=bot", "--secret", "openai.api_key=key")
	if got.status != 0 || !strings.Contains(got.stdout, "made/workspaces/acme.yaml") || strings.Contains(got.stdout, "canary") {
		t.Fatalf("%+v", got)
	}
	c, err := config.Load(filepath.Join(dir, "made/parley.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	account := c.Workspaces[0].Config.(*slack.Config)
	if c.Workspaces[0].ID != "acme" || account.BotToken.Reveal() != slacktest.Token || account.AppToken.Reveal() != slacktest.AppToken || len(c.Warnings) > 0 {
		t.Errorf("%+v, %v", c.Workspaces[0], c.Warnings)
	}
	for _, name := range []string{"parley.yaml", "workspaces/acme.yaml", "secrets/acme-bot_token", "secrets/assistant-api_key"} {
		if info, err := os.Stat(filepath.Join(dir, "made", name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if got := initialise("--secret", "slack.bot_token=bot", "--secret", "openai.api_key=key"); got.status != 1 || !strings.Contains(got.stderr, "--force") {
		t.Errorf("a second time: %+v", got)
	}
	if got := initialise("--secret", "slack.bot_token=bot", "--secret", "openai.api_key=key", "--force", "--json"); got.status != 0 || !strings.HasPrefix(got.stdout, `{"files":["made/parley.yaml"`) {
		t.Errorf("with --force: %+v", got)
	}
}

// TestInitAsksOnlyPeople checks wrong use.
func TestInitAsksOnlyPeople(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"init", "init --non-interactive", "init --non-interactive --platform irc --agent echo", "init --non-interactive --platform http --agent oracle"} {
		if got := parley(t, t.TempDir(), strings.Fields(line)...); got.status != 2 {
			t.Errorf("%s: %+v", line, got)
		}
	}
	dir := t.TempDir()
	if got := parley(t, dir, "init", "--non-interactive", "--platform", "http", "--agent", "echo"); got.status != 0 {
		t.Errorf("%+v", got)
	}
	if c, err := config.Load(filepath.Join(dir, "parley.yaml")); err != nil || c.Workspaces[0].ID != "local" || c.Agents[0].ID != "assistant" {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestInitOfAPackage names the service that a package starts.
func TestInitOfAPackage(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PARLEY_SYSTEM_CONFIG", filepath.Join(dir, "parley.yaml"))
	if got := parley(t, t.TempDir(), "init", "--dir", dir, "--non-interactive", "--platform", "http", "--agent", "echo"); !strings.HasSuffix(got.stdout, "next: systemctl enable --now parley\n") {
		t.Errorf("%+v", got)
	}
}

// TestInitWithData puts the store, the attachments and the socket into a folder of their own.
func TestInitWithData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "${x}") // no reference to a variable
	if got := parley(t, dir, "init", "--non-interactive", "--platform", "http", "--agent", "echo", "--data", "data"); got.status != 2 {
		t.Errorf("%+v", got)
	}
	if got := parley(t, dir, "init", "--non-interactive", "--platform", "http", "--agent", "echo", "--data", data); got.status != 0 {
		t.Errorf("%+v", got)
	}
	c, err := config.Load(filepath.Join(dir, "parley.yaml"))
	if err != nil || c.Store.Path != filepath.Join(data, "parley.db") || c.Attachments.Dir != filepath.Join(data, "attachments") || c.Socket() != filepath.Join(data, "parley.sock") {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := os.Stat(data); err == nil {
		t.Error("the folder is made by the daemon, and not before")
	}
}

// TestAdd adds agents and a workspace to configurations of several forms. Their comments and their order stay.
func TestAdd(t *testing.T) {
	t.Parallel()
	server, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	for name, c := range map[string]struct{ before, after string }{
		"a list of lines": {"# ours\nagents: # two\n- id: helper # first\n  kind: echo\n\n# the rest\nlog: {level: warn}\n",
			"# ours\nagents: # two\n- id: helper # first\n  kind: echo\n- id: more\n  kind: echo\n\n# the rest\nlog: {level: warn}\n"},
		"a list in brackets": {"agents: [{id: helper, kind: echo}] # one\nlog: {level: warn}\n", "agents: [{id: helper, kind: echo}, {id: more, kind: echo}] # one\nlog: {level: warn}\n"},
		"no list":            {"# nothing yet\n", "# nothing yet\nagents:\n  - id: more\n    kind: echo\n"},
		"a text of lines": {"agents:\n  - id: helper\n    kind: openai\n    model: m\n    system_prompt: |\n      One.\n\n      Two.\n",
			"agents:\n  - id: helper\n    kind: openai\n    model: m\n    system_prompt: |\n      One.\n\n      Two.\n  - id: more\n    kind: echo\n"},
	} {
		dir := t.TempDir()
		write(t, dir, "parley.yaml", c.before)
		if err := os.Chmod(filepath.Join(dir, "parley.yaml"), 0o640); err != nil {
			t.Fatal(err)
		}
		if got := parley(t, dir, "agent", "add", "echo", "--id", "more", "--offline"); got.status != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		info, _ := os.Stat(filepath.Join(dir, "parley.yaml"))
		if got, err := os.ReadFile(filepath.Join(dir, "parley.yaml")); err != nil || string(got) != c.after || info.Mode().Perm() != 0o640 {
			t.Errorf("%s: %v %v\n%s", name, err, info.Mode(), got)
		}
		if got := parley(t, dir, "agent", "add", "echo", "--id", "more", "--offline"); got.status != 1 {
			t.Errorf("%s: the same id: %+v", name, got)
		}
		write(t, dir, "bot", slacktest.Token)
		write(t, dir, "app", slacktest.AppToken)
		add := func(id string) output {
			return parley(t, dir, "workspace", "add", "slack", "--id", id, "--agent", "more", "--set", "slack.api_url="+server.URL(), "--secret", "slack.bot_token=bot", "--secret", "slack.app_token=app")
		}
		if got := add("acme"); got.status != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		if got := add("again"); got.status != 1 || !strings.Contains(got.stderr, "nothing is changed") { // the same account
			t.Errorf("%s: %+v", name, got)
		}
		conf, err := config.Load(filepath.Join(dir, "parley.yaml"))
		if err != nil || len(conf.Workspaces) != 2 || conf.Workspaces[0].ID != "acme" || conf.Workspaces[0].Agent != "more" {
			t.Errorf("%s: %+v %v", name, conf, err)
		}
	}
	if got := parley(t, t.TempDir(), "agent", "add", "echo"); got.status != 1 || !strings.Contains(got.stderr, "parley init") {
		t.Errorf("no configuration: %+v", got)
	}
	manifest, err := os.ReadFile("../../../../adapters/slack/manifest.yaml")
	if got := parley(t, t.TempDir(), "init", "--manifest", "slack"); err != nil || got.status != 0 || got.stdout != string(manifest) {
		t.Errorf("the manifest: %+v %v", got, err)
	}
}

// TestConfigShow prints where each value is from, and schema a schema.
func TestConfigShow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:1\nmetrics: {token: canary-7f3a9c51d2e84b60a1c35e97}\n")
	write(t, dir, "workspaces/acme.yaml", "id: acme\nplatform: slack\nagent: echo\nslack: {app_token: xapp-canary, bot_token: xoxb-canary}\nchannels:\n  - {id: C06RY3YBSLE, policy: {require_mention: false}}\n")
	write(t, dir, "workspaces/home.yaml", "id: home\nplatform: discord\nagent: echo\ndiscord: {token: canary}\n")
	got := parley(t, dir, "config", "show")
	for _, line := range []string{"listen: 127.0.0.1:1 (parley.yaml:1)", "metrics.token: [secret] (parley.yaml:2)", "workspace acme", "workspace home",
		"channels[0].policy.require_mention: false (workspaces/acme.yaml:6)"} {
		if !strings.Contains(got.stdout, line+"\n") {
			t.Errorf("%q is not in\n%s", line, got.stdout)
		}
	}
	for _, ref := range []string{"C06RY3YBSLE", "acme:C06RY3YBSLE"} {
		got := parley(t, dir, "config", "show", "--channel", ref, "--json")
		if got.status != 0 || strings.Contains(got.stdout, "listen") || strings.Contains(got.stdout, "canary") ||
			!strings.Contains(got.stdout, `{"workspace":"acme","key":"channels[0].policy.require_mention","value":"false","file":"workspaces/acme.yaml","line":6}`) {
			t.Errorf("%s: %+v", ref, got)
		}
	}
	if got := parley(t, dir, "config", "show", "--channel", "C1"); got.status != 2 {
		t.Errorf("%+v", got)
	}
	if got := parley(t, dir, "schema", "--file", "workspace"); got.status != 0 || !strings.HasPrefix(got.stdout, "{") || !strings.Contains(got.stdout, `"anyOf":[{"$ref":"#/$defs/workspace"}]`) {
		t.Errorf("%+v", got)
	}
}
