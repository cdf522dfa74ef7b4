package config_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/adapters"
	"parley/adapters/agent/openai"
	"parley/adapters/slack"
	"parley/adapters/web/access"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/assembly/workstream"
	"parley/config"
	"parley/config/secret"
	"parley/ingest"
	"parley/ingest/event"
)

var update = flag.Bool("update", false, "write the golden files")

// equalSecrets lets cmp compare the texts of secrets.
var equalSecrets = cmp.Comparer(func(a, b secret.Value) bool { return a.Reveal() == b.Reveal() })

// write makes a folder of files and changes to it.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// archive reads a folder of files from one text, in which "-- name --" begins a file.
func archive(t *testing.T, path string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, part := range strings.Split("\n"+string(content), "\n-- ")[1:] {
		name, body, _ := strings.Cut(part, " --\n")
		files[name] = strings.TrimSuffix(body, "\n") + "\n"
	}
	return files
}

// webWorkspace is the file of a workspace without faults. A test can append lines.
const webWorkspace = `
id: w
platform: web
agent: echo
web: {tokens: [{id: ci, token: ci-7f3a9c51d2e84b60a1c35e97, name: CI}]}
`

// load reads a parley.yaml and the file webWorkspace with the given lines appended.
func load(t *testing.T, main, workspace string) *config.Config {
	t.Helper()
	write(t, map[string]string{"parley.yaml": main, "workspaces/w.yaml": webWorkspace + workspace})
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestHiddenFilesOfWorkspaces proves that an editor's file beside a workspace's is read only if the
// pattern has its dot.
func TestHiddenFilesOfWorkspaces(t *testing.T) {
	for pattern, sound := range map[string]bool{"workspaces/*.yaml": true, "workspaces/.*.yaml": false} {
		write(t, map[string]string{"parley.yaml": "workspaces: " + pattern + "\n", "workspaces/w.yaml": webWorkspace, "workspaces/.w.yaml": "\x00"})
		if c, _ := config.Load(""); (c != nil) != sound {
			t.Errorf("%s: the configuration is %v", pattern, c)
		}
	}
}

// TestFaults compares the exact text of every fault. Each file in testdata contains a
// configuration and its faults.
func TestFaults(t *testing.T) {
	paths, err := filepath.Glob("testdata/faults/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no testdata: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			files := archive(t, path)
			want := files["faults"]
			delete(files, "faults")
			golden, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, files)
			t.Setenv("BOT", "xoxb-1")
			t.Setenv("EMPTY", "")
			t.Setenv("WRONG", "wrong")

			c, err := config.Load("parley.yaml")
			if c != nil {
				t.Error("Load returned a configuration that has faults")
			}
			var faults config.Faults
			if !errors.As(err, &faults) {
				t.Fatalf("Load: %v, want Faults", err)
			}
			got := withoutPlatforms(faults.Error())
			if *update {
				writeFaults(t, golden, got)
				return
			}
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got+"\n", "\n")); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// withoutPlatforms replaces the lists of all platforms in faults, so that a new platform
// changes no golden file.
func withoutPlatforms(faults string) string {
	names := config.PlatformNames()
	last := len(names) - 1
	return strings.NewReplacer(strings.Join(names[:last], ", ")+" or "+names[last], "{a platform}",
		strings.Join(names, ", "), "{platforms}").Replace(faults)
}

// writeFaults replaces the faults at the end of a golden file.
func writeFaults(t *testing.T, path, faults string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	configuration, _, _ := bytes.Cut(content, []byte("-- faults --\n"))
	content = append(configuration, "-- faults --\n"+faults+"\n"...)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDocumentedExample loads the documented example. Every default that the example
// shows must be the default of the code.
func TestDocumentedExample(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-1")
	t.Setenv("SLACK_APP_TOKEN", "xapp-1")
	t.Setenv("SLACK_BOT_TOKEN", "xoxb-1")
	t.Setenv("SLACK_SIGNING_SECRET", "8f742231b10e8888")
	t.Chdir("testdata/example")
	got, err := config.Load("parley.yaml")
	if err != nil {
		t.Fatal(err)
	}

	want := config.Default()
	model := openai.DefaultConfig()
	model.APIKey, model.Model = secret.New("sk-1"), "llama3.2"
	want.Agents = append(want.Agents, config.Agent{ID: "assistant", Kind: "openai", Files: turn.FilesText, QuietReply: turn.DefaultQuietReply, Workstreams: workstream.DefaultConfig(), Config: &model})

	acme := config.NewWorkspace("acme", event.Slack, "assistant")
	account := slack.DefaultConfig()
	account.AppToken, account.BotToken, account.SigningSecret = secret.New("xapp-1"), secret.New("xoxb-1"), secret.New("8f742231b10e8888")
	acme.Config = &account
	quiet := acme.Settings
	quiet.Agent, quiet.Policy.RequireMention, quiet.Turns.Mode = "echo", false, "interrupt"
	acme.Channels = map[string]config.Settings{"C06RY3YBSLE": quiet}
	want.Workspaces = append([]config.Workspace{acme}, want.Workspaces...)

	if diff := cmp.Diff(want, got, equalSecrets, cmpopts.IgnoreUnexported(config.Config{})); diff != "" {
		t.Errorf("the example (-want +got):\n%s", diff)
	}
}

// TestWithoutFiles checks the configuration that applies without any file.
func TestWithoutFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Workspaces) != 1 {
		t.Fatalf("%d workspaces, want the local one", len(c.Workspaces))
	}
	w := c.Workspaces[0]
	if w.ID != "local" || !w.Config.(*access.Config).Local || w.Platform != event.Web || w.Agent != "echo" {
		t.Errorf("workspace %+v, want the web workspace local with the echo agent", w)
	}
	if c.Listen != "127.0.0.1:8484" || c.Store.Path != "data/parley.db" || c.Attachments.Dir != "data/attachments" {
		t.Errorf("listen %q, store %q, attachments %q", c.Listen, c.Store.Path, c.Attachments.Dir)
	}
}

// TestOnlyAgents proves that two lines are a configuration: the first agent answers in the built-in
// workspace.
func TestOnlyAgents(t *testing.T) {
	write(t, map[string]string{"parley.yaml": "agents:\n  - {id: assistant, kind: openai, base_url: http://127.0.0.1:11434/v1, model: m}\n  - {id: echo, kind: echo}\n"})
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Workspaces) != 1 || c.Workspaces[0].ID != "local" || c.Workspaces[0].Agent != "assistant" || !c.Workspaces[0].Config.(*access.Config).Local {
		t.Errorf("workspaces %+v, want local with the first agent", c.Workspaces)
	}
}

// TestLocalBesideOthers: the built-in workspace stays beside workspaces of platforms, for this machine alone.
func TestLocalBesideOthers(t *testing.T) {
	const slack = "platform: slack\nslack: {mode: http, bot_token: xoxb-test, signing_secret: 0123456789abcdef0123456789abcdef}\n"
	const web = "platform: web\nweb: {tokens: [{id: t, token: 0123456789abcdefghijklmn, name: T, senders: own}]}\n"
	for name, c := range map[string]struct{ main, id, file, want string }{
		"beside Slack":           {"", "w", slack, "w local"},
		"beside a web workspace": {"", "w", web, "w"},
		"turned off":             {"local: false\n", "w", slack, "w"},
		"others reach it":        {"listen: 0.0.0.0:8484\n", "w", slack, "w"},
		"a file has its id":      {"", "local", slack, "local"},
	} {
		write(t, map[string]string{"parley.yaml": c.main, "workspaces/w.yaml": "id: " + c.id + "\nagent: echo\n" + c.file})
		got, err := config.Load("")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var ids []string
		for _, w := range got.Workspaces {
			ids = append(ids, w.ID)
		}
		if strings.Join(ids, " ") != c.want {
			t.Errorf("%s: workspaces %v, want %s", name, ids, c.want)
		}
	}
	write(t, map[string]string{"parley.yaml": "local: false\n"})
	if _, err := config.Load(""); err == nil || !strings.HasPrefix(err.Error(), "parley.yaml:1: local: leaves no workspace") {
		t.Errorf("no workspace is left: %v", err)
	}
}

func TestFileInWorkingDirectory(t *testing.T) {
	c := load(t, "listen: 127.0.0.1:9\n", "")
	if c.Listen != "127.0.0.1:9" || c.Workspaces[0].ID != "w" || c.Workspaces[0].Config.(*access.Config).Local {
		t.Errorf("Load(\"\") = %+v, want the values of parley.yaml", c)
	}
}

func TestMissingFile(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := config.Load("other.yaml")
	if want := "other.yaml:1: can't be read: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("Load: %v, want %s", err, want)
	}
}

// TestRelativePaths loads files of another folder than the working directory: their
// relative paths start at their own folder.
func TestRelativePaths(t *testing.T) {
	write(t, map[string]string{
		"etc/[x]/parley.yaml":     "store: sqlite:../parley.db\nattachments: {dir: /var/files}\nworkspaces: teams/*.yaml\n",
		"etc/[x]/teams/w.yaml":    "id: w\nplatform: web\nagent: echo\nweb: {tokens: [{id: ci, name: CI, token: '${file:token.txt}'}]}\n",
		"etc/[x]/teams/token.txt": "ci-7f3a9c51d2e84b60a1c35e97\r\n",
	})
	c, err := config.Load("etc/[x]/parley.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Store.Path != "etc/parley.db" || c.Attachments.Dir != "/var/files" {
		t.Errorf("store %q, attachments %q", c.Store.Path, c.Attachments.Dir)
	}
	if got := c.Workspaces[0].Config.(*access.Config).Tokens[0].Token.Reveal(); got != "ci-7f3a9c51d2e84b60a1c35e97" {
		t.Errorf("token %q, want the text of the file without its line end", got)
	}
}

// TestSwitches writes settings that are on, off or decide themselves with and without quotes.
func TestSwitches(t *testing.T) {
	write(t, map[string]string{
		"parley.yaml": "agents: [{id: m, kind: openai, model: m, images: false}]\n",
		"workspaces/w.yaml": "id: w\nplatform: web\nagent: m\nweb:\n  tokens:\n" +
			"    - {id: ci, name: CI, token: ci-7f3a9c51d2e84b60a1c35e97, instructions: true}\n" +
			"    - {id: me, name: Me, token: me-7f3a9c51d2e84b60a1c35e97, instructions: 'false', senders: any}\n",
	})
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	tokens := c.Workspaces[0].Config.(*access.Config).Tokens
	if images := c.Agents[0].Config.(*openai.Config).Images; images != adapters.Off || !tokens[0].Instructs() || tokens[1].Instructs() {
		t.Errorf("images %q, instructions %q and %q", images, tokens[0].Instructions, tokens[1].Instructions)
	}
}

// TestReferences refers to environment variables in settings of every type.
func TestReferences(t *testing.T) {
	t.Setenv("HOST", "127.0.0.1")
	t.Setenv("PORT", "9000")
	t.Setenv("FLAG", "false")
	t.Setenv("TRICK", "${PORT}: *x # y")
	c := load(t, `
listen: ${HOST}:${PORT}
agents:
  - {id: echo, kind: echo}
  - id: model
    kind: openai
    api_key: ${PORT}
    model: "a $${b} $5 ${TRICK}"
    max_concurrent: ${PORT}
    timeout: ${PORT}ms
`, "policy:\n  require_mention: ${FLAG}\n")
	model := c.Agents[1].Config.(*openai.Config)
	got := []any{c.Listen, model.APIKey.Reveal(), model.Model, model.MaxConcurrent, model.Timeout.String(), c.Workspaces[0].Policy.RequireMention}
	want := []any{"127.0.0.1:9000", "9000", "a ${b} $5 ${PORT}: *x # y", 9000, "9s", false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

// TestReferenceToFile refers to a file: its text loses its last line end and nothing else.
func TestReferenceToFile(t *testing.T) {
	write(t, map[string]string{
		"parley.yaml":       "agents:\n  - {id: echo, kind: echo}\n  - {id: m, kind: openai, model: m, system_prompt: '${file:prompt.md}'}\n",
		"prompt.md":         "  Be brief.\n\nBe ${KIND}.\n\n",
		"workspaces/w.yaml": webWorkspace,
	})
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Agents[1].Config.(*openai.Config).SystemPrompt, "  Be brief.\n\nBe ${KIND}.\n"; got != want {
		t.Errorf("system prompt %q, want %q", got, want)
	}
}

// TestAllowLists distinguishes a missing list from an empty one.
func TestAllowLists(t *testing.T) {
	policy := load(t, "", "policy: {allow_channels: [], reactions: true}\n").Workspaces[0].Policy
	if !policy.Reactions || ingest.DefaultPolicy().Reactions {
		t.Errorf("reactions %v, by default %v; want true only if the file sets it", policy.Reactions, ingest.DefaultPolicy().Reactions)
	}
	if policy.AllowUsers != nil {
		t.Errorf("allow_users %#v, want nil: everybody", policy.AllowUsers)
	}
	if policy.AllowChannels == nil || len(policy.AllowChannels) != 0 {
		t.Errorf("allow_channels %#v, want an empty list: nobody", policy.AllowChannels)
	}
}

// TestChannelOverrides checks that a channel's entry changes only its own keys, and
// neither the workspace nor another channel.
func TestChannelOverrides(t *testing.T) {
	w := load(t, "agents: [{id: echo, kind: echo}, {id: other, kind: echo}]\n", `
policy: {allow_users: [U1, U2], loop_guard: {runs: 7, per: 1m}}
turns: {mode: steer, coalesce: 0}
channels:
  - {id: c0Ab.x, agent: other}
  - {id: C1, policy: {allow_users: [U9], loop_guard: {runs: 2}}, turns: {max_attempts: 9}}
  - {id: C2, policy: {allow_users: []}}
`).Workspaces[0]

	base := config.NewWorkspace("", "", "echo").Settings
	base.Policy.AllowUsers = []string{"U1", "U2"}
	base.Policy.LoopGuard = ingest.LoopGuard{Runs: 7, Per: 60e9}
	base.Turns.Mode, base.Turns.Coalesce = "steer", 0
	agent, strict, closed := base, base, base
	agent.Agent = "other"
	strict.Policy.AllowUsers, strict.Policy.LoopGuard.Runs, strict.Turns.MaxAttempts = []string{"U9"}, 2, 9
	closed.Policy.AllowUsers = []string{}

	for channel, want := range map[string]config.Settings{"c0Ab.x": agent, "C1": strict, "C2": closed, "C3": base, "c0ab.x": base} {
		if diff := cmp.Diff(want, w.Channel(channel)); diff != "" {
			t.Errorf("channel %s (-want +got):\n%s", channel, diff)
		}
	}
}

// TestIDsOfAPlatform checks that the ids of a file become those of the events.
func TestIDsOfAPlatform(t *testing.T) {
	write(t, map[string]string{"parley.yaml": "", "workspaces/w.yaml": `
id: w
platform: bluebubbles
agent: echo
bluebubbles: {url: "http://mac:1234", password: pass-of-the-test, webhook_secret: ci-7f3a9c51d2e84b60a1c35e97}
policy: {allow_users: ["+15555550142", Nora@Example.org], allow_bots: [Bank@Example.org], allow_channels: ["iMessage;+;chat1", chat2]}
channels: [{id: "any;+;chat1", agent: echo, policy: {require_mention: false}}]
`})
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	w := c.Workspaces[0]
	for _, policy := range []ingest.Policy{w.Policy, w.Channel("chat1").Policy} {
		if diff := cmp.Diff([]string{"+15555550142", "nora@example.org"}, policy.AllowUsers); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"bank@example.org"}, policy.AllowBots); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"chat1", "chat2"}, policy.AllowChannels); diff != "" {
			t.Error(diff)
		}
	}
	if w.Channel("chat1").Policy.RequireMention || !w.Channel("chat2").Policy.RequireMention {
		t.Error("the settings of chat1 are not found by its last part")
	}
}

// TestLimits checks that a channel's own limits count its runs alone, even if they equal the
// workspace's.
func TestLimits(t *testing.T) {
	w := load(t, "", `
limits: {runs_per_user: 60/h, runs_per_workspace: "1000/d"}
channels:
  - {id: C1, limits: {runs_per_user: 10/15m}}
  - {id: C2, limits: {runs_per_user: 60/h, runs_per_workspace: 0}}
  - {id: C3, agent: echo}
`).Workspaces[0]
	hourly, daily := ingest.Rate{Runs: 60, Per: time.Hour}, ingest.Rate{Runs: 1000, Per: 24 * time.Hour}
	own := hourly
	own.Channel = "C2"
	for channel, want := range map[string]ingest.Limits{
		"C0": {RunsPerUser: hourly, RunsPerWorkspace: daily},
		"C1": {RunsPerUser: ingest.Rate{Runs: 10, Per: 15 * time.Minute, Channel: "C1"}, RunsPerWorkspace: daily},
		"C2": {RunsPerUser: own, RunsPerWorkspace: ingest.Rate{Channel: "C2"}},
		"C3": {RunsPerUser: hourly, RunsPerWorkspace: daily},
	} {
		if diff := cmp.Diff(want, w.Channel(channel).Limits); diff != "" {
			t.Errorf("channel %s (-want +got):\n%s", channel, diff)
		}
	}
}

// TestFromMeReachesPolicy checks that BlueBubbles' from_me reaches the policy of every
// channel.
func TestFromMeReachesPolicy(t *testing.T) {
	write(t, map[string]string{"parley.yaml": "", "workspaces/w.yaml": `
id: w
platform: bluebubbles
agent: echo
bluebubbles: {url: "http://mac:1234", password: pass-of-the-test, webhook_secret: ci-7f3a9c51d2e84b60a1c35e97, from_me: run}
channels: [{id: "iMessage;-;x", turns: {mode: steer}}]
`})
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	w := c.Workspaces[0]
	if !w.Policy.FromMe || !w.Channel("x").Policy.FromMe {
		t.Errorf("from_me: run did not reach the policy: %+v", w)
	}
}

func TestWindow(t *testing.T) {
	w := load(t, "", "context: {bytes: 5}\n").Workspaces[0]
	if want := (assembly.Window{Turns: 50, Bytes: 5, Thread: 20}); w.Context != want {
		t.Errorf("context %+v, want %+v", w.Context, want)
	}
}

func TestSeverity(t *testing.T) {
	for level, want := range map[string]string{"debug": "DEBUG", "info": "INFO", "warn": "WARN", "error": "ERROR"} {
		if got := (config.Log{Level: level}).Severity().String(); got != want {
			t.Errorf("Severity of %s is %s", level, got)
		}
	}
}

// TestLineOfATab names the line that has the tab, for which the parser gives the line before.
func TestLineOfATab(t *testing.T) {
	write(t, map[string]string{"parley.yaml": "log:\n  level: info\n\tformat: json\n"})
	_, err := config.Load("")
	if err == nil || !strings.HasPrefix(err.Error(), "parley.yaml:3: is not YAML") || !strings.HasSuffix(err.Error(), "indent with spaces instead of tabs") {
		t.Error(err)
	}
}
