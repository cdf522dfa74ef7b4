package commands

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/adapters/slack/slacktest"
	"parley/ingest/attach/s3test"
)

// sound is the output of check for a configuration without faults. The built-in workspace counts.
func sound(workspaces int) string {
	return fmt.Sprintf("the configuration is sound: %s, 1 agent\n", count(workspaces, "workspace"))
}

// startSlack starts a fake Slack, and writes the file of its workspace into dir.
func startSlack(t *testing.T, dir, id string, options slacktest.Options) *slacktest.Server {
	t.Helper()
	server, err := slacktest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\n")
	write(t, dir, "workspaces/"+id+".yaml", fmt.Sprintf(`id: %s
platform: slack
agent: echo
slack:
  app_token: %s
  bot_token: %s-%s
  api_url: %q
`, id, slacktest.AppToken+"-"+id, slacktest.Token, id, server.URL()))
	return server
}

// without returns the options of a fake Slack with the tokens of a workspace, whose app
// lacks a scope.
func without(id, scope string) slacktest.Options {
	options := slacktest.Options{Token: slacktest.Token + "-" + id, AppToken: slacktest.AppToken + "-" + id, Scopes: []string{}}
	for _, s := range slacktest.AllScopes() {
		if s != scope {
			options.Scopes = append(options.Scopes, s)
		}
	}
	return options
}

func TestCheckAsksSlack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scope          string // the scope that the app lacks
		do             func(*slacktest.Server)
		args           []string
		status         int
		stdout, stderr string // patterns
	}{
		"no fault": {stdout: "^" + sound(2) + "$", stderr: "^$"},
		"optional scope missing": {scope: "channels:history", stdout: "^" + sound(2) + "$",
			stderr: `^workspaces/acme\.yaml:6: slack\.bot_token: warning: .*channels:history.*message\.channels.*\n$`},
		"required scope missing": {scope: "chat:write", status: 1, stdout: `^workspaces/acme\.yaml:6: slack\.bot_token: .*chat:write.*\n$`,
			stderr: "^parley: the configuration has 1 fault\n$"},
		"offline": {scope: "chat:write", args: []string{"--offline"}, stdout: "^" + sound(2) + "$", stderr: "^$"},
		"refused": {do: (*slacktest.Server).Revoke, status: 1, stderr: "^parley: the configuration has 2 faults\n$",
			stdout: `^workspaces/acme\.yaml:5: slack\.app_token: .*token_revoked.*\nworkspaces/acme\.yaml:6: slack\.bot_token: .*token_revoked.*\n$`},
		"another server": {do: func(s *slacktest.Server) { s.Script("auth.test", slacktest.Fault{Body: "\n<html>"}) }, stdout: "^" + sound(2) + "$",
			stderr: `^workspaces/acme\.yaml:4: slack: note: no answer from the platform: .*slack\.api_url.*\n$`},
		"unreachable": {do: func(s *slacktest.Server) { _ = s.Close() }, stdout: "^" + sound(2) + "$",
			stderr: `^workspaces/acme\.yaml:4: slack: note: no answer from the platform: .*auth\.test.*\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := startSlack(t, dir, "acme", without("acme", c.scope))
			if c.do != nil {
				c.do(server)
			}
			got := parley(t, dir, append([]string{"check"}, c.args...)...)
			if got.status != c.status || !regexp.MustCompile(c.stdout).MatchString(got.stdout) || !regexp.MustCompile(c.stderr).MatchString(got.stderr) {
				t.Errorf("%d\n%s\n%s", got.status, got.stdout, got.stderr)
			}
			if strings.Contains(got.stdout+got.stderr, "slacktest") {
				t.Errorf("the output contains a token:\n%s%s", got.stdout, got.stderr)
			}
		})
	}
}

// TestCheckOfFaultyFilesIsOffline: a fault of the files is printed, and Slack is not asked.
func TestCheckOfFaultyFilesIsOffline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	options := without("acme", "chat:write")
	options.OnCall = func(call slacktest.Call) { t.Errorf("%s was called", call.Method) }
	startSlack(t, dir, "acme", options)
	write(t, dir, "parley.yaml", "log: {level: loud}\n")
	if got := parley(t, dir, "check"); got.status != 1 || strings.Count(got.stdout, "\n") != 1 || !strings.HasPrefix(got.stdout, "parley.yaml:1: log.level:") {
		t.Errorf("%+v", got)
	}
}

// TestCheckIsConcurrent: no Slack answers before both have been asked.
func TestCheckIsConcurrent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	asked, all := make(chan string, 10), make(chan struct{})
	for _, id := range []string{"acme", "other"} {
		options := without(id, "users:read")
		options.OnCall = func(call slacktest.Call) {
			if call.Method == "auth.test" {
				asked <- id
			}
		}
		startSlack(t, dir, id, options).Script("auth.test", slacktest.Fault{Hold: all})
	}
	go func() {
		defer close(all)
		for range 2 {
			select {
			case <-asked:
			case <-t.Context().Done():
			}
		}
	}()
	got := parley(t, dir, "check")
	if got.status != 0 || got.stdout != sound(3) || strings.Count(got.stderr, "users:read") != 2 {
		t.Errorf("%+v", got)
	}
	if acme, other := strings.Index(got.stderr, "acme.yaml:6:"), strings.Index(got.stderr, "other.yaml:6:"); acme < 0 || other < acme {
		t.Errorf("wrong order:\n%s", got.stderr)
	}
}

// TestCheckRefusesWhatRunRefuses checks faults of the machine. A check leaves no file.
func TestCheckRefusesWhatRunRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ main, want string }{
		"address": {"store: sqlite:data/p.db\nlisten: 203.0.113.7:8484\n", `^parley\.yaml:2: listen: the daemon can't start: .*203\.0\.113\.7.*\n$`},
		"folder":  {"listen: 127.0.0.1:0\nstore: sqlite:workspaces\n", `^parley\.yaml:2: store: the daemon can't start: .*is a directory\n$`},
		"file":    {"listen: 127.0.0.1:0\nstore: sqlite:parley.yaml/p.db\n", `^parley\.yaml:2: store: the daemon can't start: .*not a directory\n$`},
		"server":  {"listen: 127.0.0.1:0\nstore: postgres://u@127.0.0.1:1/d\n", `^parley\.yaml:2: store: the daemon can't start: connect to the database: .*refused\n$`},
		"url":     {"listen: 127.0.0.1:0\nstore: postgres://u@127.0.0.1/d?sslmode=no\n", `^parley\.yaml:2: store: the daemon can't start: .*cannot be parsed.*\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "parley.yaml", c.main)
			write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: ci-7f3a9c51d2e84b60a1c35e97, name: c}]}\n")
			if got := parley(t, dir, "check"); got.status != 1 || !regexp.MustCompile(c.want).MatchString(got.stdout) {
				t.Errorf("check: %d\n%s\n%s", got.status, got.stdout, got.stderr)
			}
			if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 2 {
				t.Errorf("after check: %q", files)
			}
			if got := parley(t, dir, "check", "--offline"); got.status != 0 {
				t.Errorf("check --offline: %d\n%s", got.status, got.stdout)
			}
			if got := parley(t, dir, "run"); got.status != 1 {
				t.Errorf("run: %d\n%s", got.status, got.stderr)
			}
		})
	}
}

// TestCheckTriesTheFolder of attachments, and leaves nothing there.
func TestCheckTriesTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: ci-7f3a9c51d2e84b60a1c35e97, name: c}]}\n")
	for folder, want := range map[string]string{
		"new/files":            "^" + sound(1) + "$",
		"parley.yaml/files":    `^parley\.yaml:1: attachments\.dir: .*parley\.yaml.*not a directory\n$`,
		"workspaces/ours.yaml": `^parley\.yaml:1: attachments\.dir: .*not a directory\n$`,
	} {
		write(t, dir, "parley.yaml", "attachments: {dir: "+folder+"}\nlisten: 127.0.0.1:0\n")
		if got := parley(t, dir, "check"); !regexp.MustCompile(want).MatchString(got.stdout) {
			t.Errorf("%s: %+v", folder, got)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != 2 {
		t.Errorf("after check: %q", files)
	}
}

// TestCheckTriesTheBucket of attachments, and leaves nothing there.
func TestCheckTriesTheBucket(t *testing.T) {
	t.Parallel()
	server := s3test.Start()
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: ci-7f3a9c51d2e84b60a1c35e97, name: c}]}\n")
	check := func(endpoint, key string) output {
		write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nattachments:\n  s3: {endpoint: \""+endpoint+"\", bucket: "+s3test.Bucket+", region: "+s3test.Region+
			", access_key: "+key+", secret_key: canary-s3-5e0b}\n")
		return parley(t, dir, "check")
	}
	if got := check(server.URL, s3test.AccessKey); got.status != 0 || got.stdout != sound(1) || got.stderr != "" || len(server.Keys()) != 0 || len(server.Requests()) != 3 {
		t.Errorf("%+v; requests %q", got, server.Requests())
	}
	if got := check(server.URL, "AKIAOTHER"); got.status != 1 || !strings.HasPrefix(got.stdout, "parley.yaml:3: attachments.s3: ") || strings.Contains(got.stdout, "canary") {
		t.Errorf("a wrong key: %+v", got)
	}
	for _, method := range []string{"PUT", "GET", "DELETE"} {
		server.Script(method, s3test.Fault{Status: 403, Code: "AccessDenied", Message: "Access Denied"})
		if got := check(server.URL, s3test.AccessKey); got.status != 1 || !strings.Contains(got.stdout, "Access Denied") {
			t.Errorf("%s is not permitted: %+v", method, got)
		}
	}
	if got := check("http://127.0.0.1:1", s3test.AccessKey); got.status != 0 || got.stdout != sound(1) || !strings.Contains(got.stderr, "note: ") {
		t.Errorf("no server: %+v", got)
	}
}
