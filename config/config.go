// Package config loads the daemon's configuration: defaults, files, environment.
//
// Every component states its own settings, their defaults and their faults;
// this package composes them. A file passes through four stages, so that a
// fault can name its line and nothing is guessed:
//
//   - the YAML is parsed into nodes, which know their lines;
//   - ${NAME} and ${file:path} are replaced in scalar values;
//   - each value is checked against the type of its setting, strictly: no
//     number passes for a text, no unknown or doubled key passes at all;
//   - viper lays the values over the defaults, and the components' Validate
//     judges the result.
//
// All faults of all files are reported at once, and none prints a value.
package config

import (
	"log/slog"
	"time"

	"parley/adapters/agent/openai"
	"parley/adapters/backfill"
	"parley/adapters/bluebubbles"
	"parley/adapters/discord"
	"parley/adapters/slack"
	"parley/adapters/web"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest"
	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// Config is the whole configuration, checked and with its paths resolved. It
// may be printed: secrets show as a mask.
type Config struct {
	// Listen is host:port of the HTTP server.
	Listen string `yaml:"listen"`
	Store  Store  `yaml:"store"`
	// PublicURL is how platforms and agents reach us; empty where Listen says it.
	PublicURL string `yaml:"public_url"`
	Log       Log    `yaml:"log"`
	// Glob is the pattern of the workspaces' files.
	Glob string `yaml:"workspaces"`
	// Shutdown bounds how long the daemon takes to stop.
	Shutdown    time.Duration     `yaml:"shutdown"`
	Retention   journal.Retention `yaml:"retention"`
	Attachments attach.Config     `yaml:"attachments"`
	Agents      []Agent           `yaml:"agents"`
	// Workspaces are in the order of their files' names.
	Workspaces []Workspace `yaml:"-"`
}

// Log says what is logged, and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Format string `yaml:"format"` // auto, text or json
}

// Severity is Level as slog knows it.
func (l Log) Severity() slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // validated; what it can't read is info
	return level
}

// The kinds of agent.
const (
	KindEcho   = "echo"
	KindOpenAI = "openai"
)

// Agent is one configured agent.
type Agent struct {
	ID   string `yaml:"id"`
	Kind string `yaml:"kind"` // KindEcho or KindOpenAI
	// OpenAI is set for KindOpenAI; its keys stand beside id and kind.
	OpenAI openai.Config `yaml:",inline"`
}

// Workspace is one account on one platform. The pointer of its platform is set,
// the others are nil.
type Workspace struct {
	ID          string              `yaml:"id"`
	Platform    event.Platform      `yaml:"platform"`
	Slack       *slack.Config       `yaml:"slack"`
	Discord     *discord.Config     `yaml:"discord"`
	BlueBubbles *bluebubbles.Config `yaml:"bluebubbles"`
	Web         *web.Config         `yaml:"web"`
	// Settings hold in every channel that Channels does not name.
	Settings `yaml:",inline"`
	Context  assembly.Window `yaml:"context"`
	// Backfill bounds the reading of missed messages.
	Backfill backfill.Config `yaml:"catch_up"`
	// Channels are the settings of channels that have their own, by id, each
	// complete: what a channel does not say is the workspace's.
	Channels map[string]Settings `yaml:"-"`
	// Local marks the built-in workspace, whose callers need no token.
	Local bool `yaml:"-"`
}

// Settings are what a channel can have of its own.
type Settings struct {
	Agent  string        `yaml:"agent"`
	Policy ingest.Policy `yaml:"policy"`
	Turns  turn.Config   `yaml:"turns"`
}

// Channel returns the settings that hold in a channel.
func (w *Workspace) Channel(id string) Settings {
	if settings, ok := w.Channels[id]; ok {
		return settings
	}
	return w.Settings
}

// Default is the configuration without any file: one web workspace named local
// with the echo agent, on this machine alone, its data in ./data.
func Default() *Config {
	c := defaults()
	local := NewWorkspace("local", event.Web, KindEcho)
	local.Web, local.Local = new(web.DefaultConfig()), true
	c.Workspaces = []Workspace{local}
	return c
}

// NewWorkspace is a workspace with the default settings and no account.
func NewWorkspace(id string, platform event.Platform, agent string) Workspace {
	return Workspace{
		ID:       id,
		Platform: platform,
		Settings: Settings{Agent: agent, Policy: ingest.DefaultPolicy(), Turns: turn.DefaultConfig()},
		Context:  assembly.Window{Turns: 50, Bytes: 100_000, Thread: 20},
		Backfill: backfill.DefaultConfig(),
	}
}

// defaults is what holds where parley.yaml says nothing.
func defaults() *Config {
	return &Config{
		Listen:      "127.0.0.1:8484",
		Store:       Store{Engine: SQLite, Path: "data/parley.db"},
		Log:         Log{Level: "info", Format: "auto"},
		Glob:        "workspaces/*.yaml",
		Shutdown:    10 * time.Second,
		Retention:   journal.DefaultRetention(),
		Attachments: attach.DefaultConfig(),
		Agents:      []Agent{{ID: KindEcho, Kind: KindEcho}},
	}
}
