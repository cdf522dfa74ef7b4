package config_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/adapters/slack"
	"parley/config"
)

const canary = "xoxb-canary-7f3a9c51d2e84b60"

// TestFaultsPrintNoValue puts a secret at every place where a mistake can put one.
func TestFaultsPrintNoValue(t *testing.T) {
	t.Setenv("CANARY", canary)
	for _, line := range []string{
		"id: %s/", "platform: %s", "agent: %s",
		"slack: %s", "slack: [%s]", "slack: {%s}", "slack: {%s: x}", "slack: {bot_token %s}", "slack: {bot_token: [%s]}",
		"slack: {mode: %s}", "slack: {timeout: %s}", "slack: {post_rate: %s}", "slack: {api_url: %s}",
		"slack: {api_url: 'http://me:%s@h/'}", "slack: {api_url: 'http://h/?t=%s'}", "slack: {api_url: 'http://h:%s/'}",
		"slack: {app_token: %s}", "slack: {bot_token: '${%s'}", "slack: {bot_token: '${%s}'}",
		"slack:\n  bot_token: *%s", "slack:\n  bot_token: &%s", "slack:\n  bot_token: !%s", "slack:\n  bot_token: '%s",
		"slack:\n  bot_token: \"%s\\z\"", "slack:\n  bot_token: x: %s", "slack:\n  bot_token: [x\n  %s", "slack:\n  bot_token: @%s",
		"slack:\n bot_token: x\n%s", "policy: {require_mention: %s}", "policy: {allow_users: %s}", "policy: {allow_users: ['@%s']}",
		"policy: {loop_guard: {runs: %s}}", "turns: {coalesce: %s}", "channels: [{agent: %s}]", "channels: [%s]",
		"web: {tokens: [{id: '%s/', token: x}, {id: '%s/', token: %s}, {id: x, token: %s}]}", "%s", "%%%s", "- %s", "%s: %s",
	} {
		for _, value := range []string{canary, `"${CANARY}"`} {
			text := strings.ReplaceAll(strings.ReplaceAll(line, "%s", value), "%%", "%")
			write(t, map[string]string{"parley.yaml": "", "workspaces/w.yaml": text + "\n"})
			_, err := config.Load("")
			if err == nil {
				t.Errorf("%s: no fault", text)
			} else if strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: a fault contains the secret: %v", text, err)
			}
		}
	}
	for _, line := range []string{"store: mysql://%s", "store: 'postgres://me:%s@h:x/'", "store: {url: %s}", "store: {url: 'postgres://me:%s@h:x/'}",
		"store: {url: postgres://h/d, listen_url: %s}", "store: {url: 'postgres://me:%s@h/d', listen_url: 'postgres://me:%s@h:x/'}", "store: [%s]", "store: {%s: 1}",
		"metrics: %s", "metrics: {token: [%s]}", "metrics: {token: *%s}", "listen: %s", "public_url: http://%s@h", "log: {level: %s}",
		"attachments: {s3: %s}", "attachments: {s3: {secret_key: [%s]}}", "attachments: {s3: {endpoint: 'http://me:%s@h'}}", "attachments: {s3: {%s: x}}",
		"tracing: {headers: %s}", "tracing: {headers: [%s]}", "tracing: {headers: {%s}}", "tracing: {headers: {'%s/': x}}", "tracing: {headers: {a: [%s]}}",
		"tracing: {otlp: 'http://me:%s@h'}", "tracing: {link: 'http://me:%s@h/{trace}'}", "tracing: {sample: %s}"} {
		write(t, map[string]string{"parley.yaml": strings.ReplaceAll(line, "%s", canary) + "\n", "workspaces/w.yaml": webWorkspace})
		if _, err := config.Load(""); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// filesWithSecrets returns a configuration in which every secret has a value.
func filesWithSecrets(value string) map[string]string {
	files := map[string]string{
		"parley.yaml": "metrics: {token: '%s'}\ntracing: {otlp: 'http://h', headers: {X-Api-Key: '%s'}}\nstore: {url: 'postgres://me:%s@db/x', listen_url: 'postgres://me:%s@db2/x'}\n" +
			"attachments: {s3: {endpoint: 'http://h', bucket: abc, access_key: a, secret_key: '%s'}}\nagents: [{id: a, kind: openai, model: m, api_key: '%s'}]\n",
		"workspaces/b.yaml": "id: b\nplatform: bluebubbles\nagent: a\nbluebubbles: {url: 'http://h', password: '%s', webhook_secret: 'a-secret-%s'}\n",
		"workspaces/d.yaml": "id: d\nplatform: discord\nagent: a\ndiscord: {token: '%s'}\n",
		"workspaces/s.yaml": "id: s\nplatform: slack\nagent: a\nslack: {bot_token: '%s', app_token: 'app-%s', signing_secret: '%s'}\n",
		"workspaces/w.yaml": "id: w\nplatform: web\nagent: a\nweb: {tokens: [{id: t, name: T, token: '%s'}]}\n",
	}
	for name, content := range files {
		files[name] = strings.ReplaceAll(content, "%s", value)
	}
	return files
}

// TestConfigPrintsNoSecret prints a configuration in which every secret is set.
func TestConfigPrintsNoSecret(t *testing.T) {
	t.Setenv("CANARY", canary)
	write(t, filesWithSecrets("${CANARY}"))
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	marshalled, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	out := string(marshalled) + fmt.Sprintf("%v %+v %#v", c, c, c)
	out += fmt.Sprintf("%+v %#v", c.Attachments.S3, c.Attachments.S3)
	for _, w := range c.Workspaces {
		out += fmt.Sprintf("%+v %#v", w.Config, w.Config)
	}
	if strings.Contains(out, "canary") {
		t.Errorf("the output contains a secret:\n%s", out)
	}
	if got := c.Workspaces[2].Config.(*slack.Config).BotToken.Reveal(); got != canary {
		t.Errorf("the bot's token is %q, want the canary: otherwise this test proves nothing", got)
	}
}
