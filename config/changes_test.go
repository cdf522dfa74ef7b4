package config_test

import (
	"slices"
	"testing"
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
