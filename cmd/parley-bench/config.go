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
	api      *slacktest.Server
	database *database // nil for SQLite
	modelURL string    // of the fake model; empty for the echo agent
	timeout  string    // of a call of Slack's API; empty for the daemon's own
	postRate int       // posts a second and channel; 0 for as many as there are
	// streams says that the model's answers are shown while they grow, that a reaction
	// says so, and that a newer message interrupts them.
	streams bool
	// whole says that the model is given as much of a thread as by default.
	whole bool
	// sockets is how many sockets of Socket Mode a daemon keeps; 0 for the hook.
	sockets int
}

// credentials are what the daemon needs for its way to Slack's events.
func (s settings) credentials() string {
	if s.sockets > 0 {
		return fmt.Sprintf("mode: socket, app_token: %s, sockets: %d", slacktest.AppToken, s.sockets)
	}
	return "mode: http, signing_secret: " + signingSecret
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
	for file, text := range map[string]string{"parley.yaml": s.daemon(c), "workspaces/bench.yaml": s.workspace(c)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write the configuration: %w", err)
		}
	}
	return c, nil
}

func (s settings) daemon(c *child) string {
	store, agents := "sqlite:data/parley.db", "  - {id: echo, kind: echo}\n"
	if s.database != nil {
		store = s.database.url
	}
	if s.modelURL != "" {
		agents += fmt.Sprintf("  - {id: model, kind: openai, base_url: %q, model: fake, max_concurrent: 128}\n", s.modelURL)
	}
	return fmt.Sprintf("listen: %s\nstore: %q\nlog: {level: warn, format: text}\nagents:\n%s", c.address, store, agents)
}

func (s settings) workspace(c *child) string {
	agent, window, timeout, mode := "echo", "", "", "queue"
	if s.modelURL != "" {
		agent, timeout = "model", ", preview: off, working: off"
	}
	if s.modelURL != "" && !s.whole {
		window = "context: {turns: 3, bytes: 20000, thread: 5}\n" // its answers are long, and it reads the last message alone
	}
	if s.streams {
		timeout, mode = ", preview: stream, preview_every: 50ms, working: reaction", "interrupt"
	}
	if s.timeout != "" {
		timeout += ", timeout: " + s.timeout
	}
	return fmt.Sprintf(`id: %s
platform: slack
agent: %s
slack: {bot_token: %s, %s, api_url: %q, post_rate: %d%s}
turns: {mode: %s, coalesce: 0s, coalesce_max: 0s}
%s`, workspace, agent, slacktest.Token, s.credentials(), s.api.ClientURL(c.name()), s.postRate, timeout, mode, window)
}

func (c *child) storePath() string { return filepath.Join(c.dir, "data", "parley.db") }
