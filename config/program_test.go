package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent/acp"
	"parley/config"
)

// TestEnvironmentOfAProgram reads the variables of an agent that is a program: their names keep their case, and no value is shown.
func TestEnvironmentOfAProgram(t *testing.T) {
	t.Setenv("KEY", "from outside")
	write(t, map[string]string{"parley.yaml": "agents:\n  - id: coder\n    kind: acp\n    command: [coder, --acp]\n    dir: /srv\n    env: {API_KEY: \"${KEY}\", Mode.x: \"\", lower: plain}\n"})
	_, err := config.Load("")
	if err == nil {
		t.Fatal("a name of a variable with a point is taken")
	}
	write(t, map[string]string{"parley.yaml": "agents:\n  - id: coder\n    kind: acp\n    command: [coder, --acp]\n    dir: /srv\n    env: {API_KEY: \"${KEY}\", lower: plain}\n"})
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, value := range c.Agents[0].Config.(*acp.Config).Env {
		got[name] = value.Reveal()
	}
	if diff := cmp.Diff(map[string]string{"API_KEY": "from outside", "lower": "plain"}, got); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	shown := pick(c.Main(), "agents[0].env", "agents[0].command")
	if diff := cmp.Diff([]string{"agents[0].env: {API_KEY: [secret], lower: [secret]} (parley.yaml:6)", "agents[0].command: [coder, --acp] (parley.yaml:4)"}, shown); diff != "" {
		t.Errorf("effective values (-want +got):\n%s", diff)
	}
}
