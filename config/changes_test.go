package config_test

import (
	"slices"
	"strings"
	"testing"

	"parley/config"
)

// TestChangesOfAgents names an entry with another agent once, and each changed key of the same agent.
func TestChangesOfAgents(t *testing.T) {
	one := load(t, "agents: [{id: echo, kind: echo}]\n", "")
	for main, want := range map[string][]string{
		"agents: [{id: echo, kind: echo, quiet_reply: NONE, files: names}]\n":                                                                            {"agents[0].quiet_reply", "agents[0].files"},
		"agents: [{id: m, kind: webhook, url: \"http://127.0.0.1:1\", secret: 7f3a9c51d2e84b60a1c35e97}, {id: echo, kind: echo}]\nlog: {level: debug}\n": {"agents[0]", "agents[1]", "log.level"},
	} {
		next := load(t, main, "")
		got := next.Changes(one)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s%q, want %q", main, got, want)
		}
	}
}

// TestChangesOfSecrets names the keys of secrets that differ, and no secret, also beside another key of the same file.
func TestChangesOfSecrets(t *testing.T) {
	const main = `log: {level: LEVEL}
agents: [{id: echo, kind: webhook, url: "http://127.0.0.1:1", secret: SECRET-of-an-agent-0a7f31}]
metrics: {token: SECRET-of-the-metrics-91b2}
operators: [{id: olga, role: operator, token: SECRET-of-an-operator-c8d4}]
`
	with := func(word, level string) *config.Config {
		return load(t, strings.NewReplacer("SECRET", word, "LEVEL", level).Replace(main), "")
	}
	if got, want := with("second", "debug").Changes(with("first", "info")), []string{"log.level", "agents[0].secret", "metrics.token", "operators[0].token"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := with("first", "info").Changes(with("first", "info")); len(got) > 0 {
		t.Errorf("%q, though nothing differs", got)
	}
}

// TestChangesOfAWorkspace names each key of a file once, a new schedule as one.
func TestChangesOfAWorkspace(t *testing.T) {
	const file = "id: acme\nplatform: slack\nagent: echo\nslack: {MODE, bot_token: WORD-of-a-bot-0a7f31}\nSCHEDULES\n"
	with := func(mode, word, schedules string) *config.Config {
		write(t, map[string]string{"parley.yaml": "", "workspaces/acme.yaml": strings.NewReplacer("MODE", mode, "WORD", word, "SCHEDULES", schedules).Replace(file)})
		c, err := config.Load("")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const socket, events = "mode: socket, app_token: xapp-1", "mode: http, signing_secret: 7f3a9c51d2e84b60a1c35e97"
	before := with(socket, "first", "")
	got := with(events, "second", "schedules: [{id: morning, cron: '0 9 * * 1-5', to: {channel: C06RY3YBSLE}, prompt: news}]").Changes(before)
	slices.Sort(got)
	if want := []string{"acme: schedules[0]", "acme: slack.app_token", "acme: slack.bot_token", "acme: slack.mode", "acme: slack.signing_secret"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
