package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/config"
)

// warnings loads a configuration and returns its warnings, one per line.
func warnings(t *testing.T, files map[string]string) string {
	t.Helper()
	write(t, files)
	c, err := config.Load("parley.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c.Warnings.Error()
}

// TestWarningAboutAnotherExtension checks that a file of a workspace is not left out silently.
func TestWarningAboutAnotherExtension(t *testing.T) {
	got := warnings(t, map[string]string{"parley.yaml": "", "workspaces/w.yaml": webWorkspace, "workspaces/a.yml": "", "workspaces/.b.yml": ""})
	if want := "parley.yaml:1: workspaces: workspaces/a.yml is not read: give it the extension .yaml"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWarningsAboutAddresses gives every address that secrets are sent to another host.
func TestWarningsAboutAddresses(t *testing.T) {
	const http = "http sends secrets and messages readable to another host: use https"
	const tls = "the connection to another host may have no TLS: add sslmode=verify-full to the address"
	files := func(web, database string) map[string]string {
		return map[string]string{
			"parley.yaml": fmt.Sprintf(`store: {url: "postgres://p:pw@%[2]s", listen_url: "postgres://p:pw@%[2]s"}
public_url: http://parley.example.com
metrics: {token: metrics-7f3a9c51d2e84b60a1c35e97}
attachments: {s3: {endpoint: "%[1]s", bucket: abc, access_key: a, secret_key: b}}
agents:
  - {id: echo, kind: echo}
  - {id: m, kind: openai, model: m, base_url: "%[1]s/v1", tools: {read: thread}, mcp: [{url: "%[1]s/mcp", token: "mcp-7f3a9c51d2e84b60a1c35e97"}]}
`, web, database),
			"workspaces/b.yaml": fmt.Sprintf("id: b\nplatform: bluebubbles\nagent: echo\nbluebubbles: {url: \"%s\", insecure: true, password: pass-of-the-test, webhook_secret: ci-7f3a9c51d2e84b60a1c35e97}\n", web),
			"workspaces/d.yaml": fmt.Sprintf("id: d\nplatform: discord\nagent: echo\ndiscord: {token: t, api_url: \"%s\"}\n", web),
			"workspaces/s.yaml": fmt.Sprintf("id: s\nplatform: slack\nagent: echo\nslack: {app_token: a, bot_token: b, api_url: \"%s\"}\n", web),
			"workspaces/w.yaml": strings.Replace(webWorkspace, "name: CI}", "name: CI, injects: [s], deliver: {url: \""+web+"\", secret: dl-7f3a9c51d2e84b60a1c35e97}}", 1),
		}
	}
	t.Setenv("PGSSLMODE", "")
	want := strings.Join([]string{
		"parley.yaml:1: store.url: " + tls, "parley.yaml:1: store.listen_url: " + tls,
		"parley.yaml:4: attachments.s3.endpoint: " + http, "parley.yaml:7: agents[1].base_url: " + http, "parley.yaml:7: agents[1].mcp[0].url: " + http,
		"workspaces/b.yaml:4: bluebubbles.url: " + http, "workspaces/d.yaml:4: discord.api_url: " + http, "workspaces/s.yaml:4: slack.api_url: " + http,
		"workspaces/w.yaml:5: web.tokens[0].deliver.url: " + http,
	}, "\n")
	for _, host := range []string{"api.example.com", "203.0.113.7", "[2001:db8::1]:80", "internal.example.com", "local.example"} {
		if diff := cmp.Diff(want, warnings(t, files("http://"+host, host+"/parley"))); diff != "" {
			t.Errorf("%s: %s", host, diff)
		}
	}
	for _, host := range []string{"localhost", "127.0.0.1:80", "[::1]", "10.1.2.3", "172.16.0.1", "192.168.1.1", "[fd00::1]", "169.254.1.1", "mac.local", "db", "DB.Internal"} {
		if got := warnings(t, files("http://"+host, host+"/parley")); got != "" {
			t.Errorf("%s: %s", host, got)
		}
	}
	for mode, want := range map[string]string{"disable": tls, "allow": tls, "prefer": tls, "require": "", "verify-ca": "", "verify-full": ""} {
		got := warnings(t, files("https://api.example.com", "db.example.com/parley?sslmode="+mode))
		if strings.Contains(got, tls) != (want != "") || strings.Contains(got, http) {
			t.Errorf("sslmode=%s: %s", mode, got)
		}
	}
}

// TestWarningsAboutRotatingTokens: Parley does not renew a token of Slack.
func TestWarningsAboutRotatingTokens(t *testing.T) {
	got := warnings(t, map[string]string{"parley.yaml": "", "workspaces/s.yaml": "id: s\nplatform: slack\nagent: echo\nslack: {app_token: xapp-1, bot_token: xoxe.xoxb-1-a}\n"})
	if want := "workspaces/s.yaml:4: slack.bot_token: is a rotating token, which ends after 12 hours, and Parley does not renew it: use an app without token rotation"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWarningAboutAGuessablePassword: BlueBubbles accepts any password.
func TestWarningAboutAGuessablePassword(t *testing.T) {
	got := warnings(t, map[string]string{"parley.yaml": "", "workspaces/b.yaml": "id: b\nplatform: bluebubbles\nagent: echo\n" +
		"bluebubbles: {url: \"http://mac:1234\", password: hunter22222, webhook_secret: ci-7f3a9c51d2e84b60a1c35e97}\n"})
	if want := "workspaces/b.yaml:4: bluebubbles.password: can be guessed by everybody who reaches the BlueBubbles server: give the server one of at least 12 characters"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWarningsAboutPermissions lets every user of the machine write to a file or folder.
func TestWarningsAboutPermissions(t *testing.T) {
	files := map[string]string{"parley.yaml": "", "workspaces/w.yaml": webWorkspace, "data/parley.db": "", "data/attachments/x": ""}
	for _, c := range []struct{ path, want string }{
		{"parley.yaml", "parley.yaml:1: every user of this machine can change parley.yaml: run chmod o-w on it"},
		{".", "parley.yaml:1: every user of this machine can change .: run chmod o-w on it"},
		{"workspaces", "parley.yaml:1: every user of this machine can change workspaces: run chmod o-w on it"},
		{"workspaces/w.yaml", "workspaces/w.yaml:1: every user of this machine can change workspaces/w.yaml: run chmod o-w on it"},
		{"data", "parley.yaml:1: store: every user of this machine can change data: run chmod o-w on it"},
		{"data/attachments", "parley.yaml:1: attachments.dir: every user of this machine can change data/attachments: run chmod o-w on it"},
	} {
		write(t, files)
		for mode, want := range map[os.FileMode]string{0o751: "", 0o753: c.want} {
			if err := os.Chmod(c.path, mode); err != nil {
				t.Fatal(err)
			}
			loaded, err := config.Load("parley.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if got := loaded.Warnings.Error(); got != want {
				t.Errorf("%s with %v: %q, want %q", c.path, mode, got, want)
			}
		}
	}
}

// TestWarningsAboutReadableSecrets lets every user of the machine read the files that hold secrets.
func TestWarningsAboutReadableSecrets(t *testing.T) {
	const webToken = "ci-7f3a9c51d2e84b60a1c35e97"
	t.Setenv("TOKEN", canary)
	t.Setenv("PGSSLMODE", "")
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"in the configuration": {map[string]string{"parley.yaml": "metrics: {token: " + canary + "}\n", "workspaces/w.yaml": webWorkspace},
			"parley.yaml:1: every user of this machine can read the secrets in parley.yaml: run chmod o-r on it\n" +
				"workspaces/w.yaml:1: every user of this machine can read the secrets in workspaces/w.yaml: run chmod o-r on it"},
		"in the password of the store": {map[string]string{"parley.yaml": "store: postgres://me:" + canary + "@localhost/x\n"},
			"parley.yaml:1: every user of this machine can read the secrets in parley.yaml: run chmod o-r on it"},
		"in a file of its own": {map[string]string{"parley.yaml": "metrics:\n  token: ${file:secrets/token}\n", "secrets/token": canary + "\n"},
			"parley.yaml:2: metrics.token: every user of this machine can read the secrets in secrets/token: run chmod o-r on it"},
		"in the environment": {map[string]string{"parley.yaml": "metrics: {token: '${TOKEN}'}\nstore: postgres://localhost/x\n"}, ""},
	} {
		if _, ok := c.files["workspaces/w.yaml"]; !ok {
			c.files["workspaces/w.yaml"] = strings.Replace(webWorkspace, webToken, "'${TOKEN}'", 1)
		}
		write(t, c.files)
		for _, mode := range []os.FileMode{0o640, 0o644} {
			for file := range c.files {
				if err := os.Chmod(file, mode); err != nil {
					t.Fatal(err)
				}
			}
			loaded, err := config.Load("parley.yaml")
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if mode == 0o640 {
				want = ""
			}
			if diff := cmp.Diff(want, loaded.Warnings.Error()); diff != "" {
				t.Errorf("%s with %v: %s", name, mode, diff)
			}
		}
	}
}

// TestWarningAboutOpenMetrics reaches a listener without a token of metrics from other machines.
func TestWarningAboutOpenMetrics(t *testing.T) {
	const open = "metrics.token: is not set, so everybody who reaches the listener reads /metrics, and the ids of all workspaces in /readyz: set a token"
	for settings, want := range map[string]string{
		"listen: 127.0.0.1:1": "", "listen: localhost:1": "", "listen: '[::1]:1'": "",
		"listen: 0.0.0.0:1": open, "listen: ':1'": open, "listen: 192.168.1.2:1": open, "listen: parley.internal:1": open,
		"public_url: https://parley.example.com":                open,
		"listen: 0.0.0.0:1\nmetrics: {token: '" + canary + "'}": "",
	} {
		got := warnings(t, map[string]string{"parley.yaml": settings + "\n", "workspaces/w.yaml": webWorkspace})
		if want != "" {
			want = "parley.yaml:1: " + want
		}
		if got != want {
			t.Errorf("%s: %q, want %q", settings, got, want)
		}
	}
}

// TestWarningsWithoutFiles: the built-in configuration has a folder of data, too.
func TestWarningsWithoutFiles(t *testing.T) {
	write(t, map[string]string{"data/parley.db": ""})
	if err := os.Chmod("data", 0o777); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	if want := "parley.yaml:1: store: every user of this machine can change data: run chmod o-w on it"; c.Warnings.Error() != want {
		t.Errorf("%q, want %q", c.Warnings.Error(), want)
	}
}

// TestWarningAboutUnreadWorkspaces checks that a workspace's file without a parley.yaml is named.
func TestWarningAboutUnreadWorkspaces(t *testing.T) {
	write(t, map[string]string{"workspaces/w.yaml": webWorkspace})
	c, err := config.Load("")
	if err != nil || !strings.Contains(c.Warnings.Error(), "parley.yaml:1: does not exist, so workspaces/w.yaml is not read") {
		t.Errorf("%v, %v", c, err)
	}
}

// TestWarningAboutStrangers: where everybody is admitted, there are no strangers.
func TestWarningAboutStrangers(t *testing.T) {
	got := warnings(t, map[string]string{
		"parley.yaml": "agents: [{id: led, kind: openai, model: m, base_url: \"http://127.0.0.1:1/v1\", approvers: [U06STGBF4Q0]}]\n",
		"workspaces/s.yaml": "id: s\nplatform: slack\nagent: led\nslack: {app_token: xapp-1, bot_token: xoxb-1}\n" +
			"channels:\n  - id: C06RY3YBSLE\n    policy: {allow_users: [U06STGBF4Q0], strangers: ask}\n  - id: C06RY3YBSLF\n    policy: {strangers: ask}\n",
	})
	if want := "workspaces/s.yaml:9: channels[1].policy.strangers: ask has no effect, because everybody is admitted: set policy.allow_users, or a list of roles or groups"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWarningsAboutAlerts: alerts that reach nobody are no fault, because the workspaces may come later, and each is told with its line.
func TestWarningsAboutAlerts(t *testing.T) {
	const told, slack = ", so nobody is told of troubles: ", "id: s\nplatform: slack\nagent: echo\nslack: {app_token: a, bot_token: b}\n"
	for alerts, want := range map[string]string{
		"{to: {workspace: s, channel: C06RY3YBSLE}}": "",
		"{to: {workspace: s, user: U06STGBF4Q0}}":    "",
		"{on: [agent]}": "alerts: has no place to write to" + told + "set to, with a workspace and a channel or a user",
		"{to: {workspace: x, channel: C06RY3YBSLE}}": "alerts.to.workspace: names no configured workspace" + told + "parley status lists them",
		"{to: {workspace: local, channel: C1}}":      "alerts.to.workspace: is one where the bot cannot write first" + told + "name a workspace of a chat platform",
		"{to: {workspace: s, channel: general}}":     "alerts.to.channel: is no id of a channel of slack" + told + "write the id, not the name",
		"{to: {workspace: s, user: mara}}":           "alerts.to.user: is no id of a user of slack" + told + "write the id, not the name",
	} {
		if want != "" {
			want = "parley.yaml:2: " + want
		}
		if got := warnings(t, map[string]string{"parley.yaml": "listen: 127.0.0.1:8484\nalerts: " + alerts + "\n", "workspaces/s.yaml": slack}); got != want {
			t.Errorf("%s: %q, want %q", alerts, got, want)
		}
	}
}

// TestFaultsOfApprovers: a role or a user group by its name could be taken by others, so that it is a fault.
func TestFaultsOfApprovers(t *testing.T) {
	for approver, isID := range map[string]bool{
		"U06STGBF4Q0": true, "slack:U06STGBF4Q0": true, "olivia@example.com": true, "role:123456789012345678": true, "group:S0614TZR7": true,
		"role:admin": false, "role:": false, "group:devs": false, "group:": false, "@mara": false,
	} {
		write(t, map[string]string{"parley.yaml": "agents:\n  - {id: m, kind: openai, model: m, base_url: \"http://127.0.0.1:1/v1\", approvers: [\"" + approver + "\"]}\n"})
		_, err := config.Load("parley.yaml")
		if (err == nil) != isID || err != nil && !strings.Contains(err.Error(), "parley.yaml:2: agents[0].approvers[0]: ") {
			t.Errorf("%s: %v", approver, err)
		}
	}
}
