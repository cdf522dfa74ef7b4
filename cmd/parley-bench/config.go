package main

import (
	"fmt"
	"os"
	"path/filepath"

	"parley/adapters/slack/slacktest"
)

// The workspace under test, and what the floor has in common with it.
const (
	workspace     = "bench"
	hookPath      = "/hooks/slack/" + workspace
	signingSecret = "bench-signing-secret"
)

// settings are what the runs configure differently.
type settings struct {
	apiURL   string // of the fake of Slack's API
	modelURL string // of the fake model; empty for the echo agent
	timeout  string // of a call of Slack's API; empty for the daemon's own
}

// newDaemon writes the configuration into a directory of the run and returns the
// daemon that will work there. Each message is a turn of its own (coalesce: 0s),
// since the ledger holds each reply against one message.
func (b *bench) newDaemon(name string, s settings) (*child, error) {
	dir := filepath.Join(b.work, name)
	if err := os.MkdirAll(filepath.Join(dir, "workspaces"), 0o700); err != nil {
		return nil, fmt.Errorf("make the daemon's directory: %w", err)
	}
	c, err := newChild(b.parley, dir)
	if err != nil {
		return nil, err
	}
	c.args = []string{"run", "--config", "parley.yaml"}
	agents, agent, window := "  - {id: echo, kind: echo}\n", "echo", ""
	if s.modelURL != "" {
		agent = "model"
		window = "context: {turns: 3, bytes: 20000, thread: 5}\n" // its answers are long, and it reads the last message alone
		agents += fmt.Sprintf("  - {id: model, kind: openai, base_url: %q, model: fake, max_concurrent: 128}\n", s.modelURL)
	}
	timeout := ""
	if s.timeout != "" {
		timeout = ", timeout: " + s.timeout
	}
	daemon := fmt.Sprintf("listen: %s\nstore: sqlite:data/parley.db\nlog: {level: warn, format: text}\nagents:\n%s", c.address, agents)
	slack := fmt.Sprintf(`id: %s
platform: slack
agent: %s
slack: {mode: http, bot_token: %s, signing_secret: %s, api_url: %q, post_rate: 0%s}
turns: {coalesce: 0s, coalesce_max: 0s}
%s`, workspace, agent, slacktest.Token, signingSecret, s.apiURL, timeout, window)
	for name, text := range map[string]string{"parley.yaml": daemon, "workspaces/bench.yaml": slack} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write the configuration: %w", err)
		}
	}
	return c, nil
}

func (c *child) storePath() string { return filepath.Join(c.dir, "data", "parley.db") }
