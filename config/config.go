// Package config loads the daemon's configuration: defaults, files, environment.
//
// Every component has its own settings, defaults and checks, and this package composes
// them. A file passes through four stages, so that each fault names its line and nothing
// is guessed:
//
//   - the YAML parser makes nodes, which know their lines;
//   - the values of ${NAME} and ${file:path} replace these references in scalar values;
//   - each value is checked against the type of its setting. The check is strict: a number
//     is no text, and an unknown or duplicate key is a fault;
//   - viper lays the values over the defaults, and the components' Validate methods check
//     the result.
//
// All faults of all files are reported at once. No fault prints a value other than an id.
// README.md in this folder lists every key with its default.
package config

import (
	"log/slog"
	"slices"
	"time"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/echo"
	"parley/adapters/backfill"
	"parley/adapters/web/access"
	"parley/adapters/web/tools"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/assembly/workstream"
	"parley/config/secret"
	"parley/ingest"
	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/runs"
	"parley/ingest/schedule"
)

// Config is the whole configuration, checked and with its paths resolved. Printing it
// shows a mask for each secret.
type Config struct {
	// Listen is host:port of the HTTP server.
	Listen string `yaml:"listen"`
	Store  Store  `yaml:"store"`
	// PublicURL is our address for platforms and agents. It is empty if Listen is that
	// address.
	PublicURL string `yaml:"public_url"`
	Log       Log    `yaml:"log"`
	// Glob is the pattern of the workspaces' files.
	Glob string `yaml:"workspaces"`
	// Local leaves the built-in workspace beside workspaces of other platforms. It is true by default.
	Local bool `yaml:"local"`
	// Shutdown bounds the time that the daemon takes to stop.
	Shutdown time.Duration `yaml:"shutdown"`
	// RememberedWindows bounds the bytes of memory for the windows of threads that were answered lately.
	RememberedWindows int64             `yaml:"remembered_windows"`
	Retention         journal.Retention `yaml:"retention"`
	Attachments       attach.Config     `yaml:"attachments"`
	Agents            []Agent           `yaml:"agents"`
	Metrics           Metrics           `yaml:"metrics"`
	Operators         []Operator        `yaml:"operators"`
	OperatorAPI       OperatorAPI       `yaml:"operator"`
	Console           Console           `yaml:"console"`
	Alerts            Alerts            `yaml:"alerts"`
	Tracing           Tracing           `yaml:"tracing"`
	// Workspaces are in the order of their files' names. The built-in one is the last.
	Workspaces []Workspace `yaml:"-"`
	// Warnings tell what is allowed but not safe, or probably a mistake.
	Warnings Faults `yaml:"-"`

	places Places `yaml:"-"` // nil for Default
}

// Log is the level and the format of the log.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn or error
	Format string `yaml:"format"` // auto, text, tint or json
}

// Metrics protects the metrics.
type Metrics struct {
	// Token admits callers to the metrics and to the details of the readiness check. If it is
	// unset, everybody gets the metrics, and only programs on this machine the details.
	Token secret.Value `yaml:"token"`
}

// Severity returns Level as a level of slog.
func (l Log) Severity() slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(l.Level)) // Level is validated; any other text leaves the zero value, info
	return level
}

// defaultAgent returns the settings that an entry of agents changes.
func defaultAgent() Agent {
	return Agent{Files: turn.FilesText, QuietReply: turn.DefaultQuietReply, Workstreams: workstream.DefaultConfig()}
}

// Agent is one configured agent.
type Agent struct {
	ID   string `yaml:"id"`
	Kind string `yaml:"kind"` // the name of a kind
	// Show are the messages of the agent that people see during a run, of turn.Shown; nil for turn.DefaultShow of a platform.
	Show []string `yaml:"show"`
	// Files is turn.FilesText or turn.FilesNames.
	Files string `yaml:"files"`
	// QuietReply is the answer with which the agent says that it has nothing to say; empty for none.
	QuietReply string `yaml:"quiet_reply"`
	// ImageHosts are the hosts whose images people see in the agent's cards.
	ImageHosts []string `yaml:"image_hosts"`
	// Workstreams are the bounds of the agents that work for it.
	Workstreams workstream.Config `yaml:"workstreams"`
	// Tools are the agent's rights to use the tools during a run.
	Tools tools.Rights `yaml:"tools"`
	// Config is the settings of its kind. In a file its keys are siblings of id and kind.
	Config agent.Config `yaml:"-"`
}

// Workspace is one account on one platform.
type Workspace struct {
	ID       string         `yaml:"id"`
	Platform event.Platform `yaml:"platform"` // the name of a platform
	// Config is the settings of its platform. In a file the platform's name is their key.
	Config adapters.Config `yaml:"-"`
	// Settings apply to every channel that Channels does not name.
	Settings `yaml:",inline"`
	// MaxConcurrent bounds the runs of all agents on a node at one time; 0 for no bound.
	MaxConcurrent int             `yaml:"max_concurrent"`
	Context       assembly.Window `yaml:"context"`
	// TimeZone is the name of the time zone in which agents are told the time; empty for UTC.
	TimeZone string `yaml:"time_zone"`
	// Rows are the kinds of messages that a run leaves in its thread: answer, tool, stage. An answer is always one.
	Rows []string `yaml:"rows"`
	// Schedules ask agents at a time.
	Schedules []schedule.Config `yaml:"schedules"`
	// Commands are the settings of the chat commands.
	Commands ingest.Commands `yaml:"commands"`
	// Backfill bounds the reading of missed messages.
	Backfill backfill.Config `yaml:"catch_up"`
	// Channels are the settings of the channels that have their own, by channel id. Each
	// is complete: a key that the channel's entry lacks has the workspace's value.
	Channels map[string]Settings `yaml:"-"`
}

// Location returns the workspace's time zone; UTC for an unknown one.
func (w *Workspace) Location() *time.Location {
	zone, err := time.LoadLocation(w.TimeZone)
	if err != nil {
		return time.UTC
	}
	return zone
}

// Zone returns the time zone of a workspace; UTC for an unknown one.
func (c *Config) Zone(workspace string) *time.Location {
	if w := c.Workspace(workspace); w != nil {
		return w.Location()
	}
	return time.UTC
}

// Settings are the settings that a channel can override.
type Settings struct {
	Agent  string        `yaml:"agent"`
	Policy ingest.Policy `yaml:"policy"`
	Turns  turn.Config   `yaml:"turns"`
	Limits ingest.Limits `yaml:"limits"`
}

// Channel returns the settings of the first of these channels that has its own, such as a thread
// and its parent; else the workspace's.
func (w *Workspace) Channel(ids ...string) Settings {
	for _, id := range ids {
		if settings, ok := w.Channels[id]; ok {
			return settings
		}
	}
	return w.Settings
}

// Default returns the configuration that applies without any file: one web workspace named
// local with the echo agent, which only this machine can reach, and data in ./data.
func Default() *Config {
	c := defaults()
	c.Workspaces = []Workspace{local(c.Agents[0].ID)}
	return c
}

// keepsLocal reports whether the built-in workspace belongs to the workspaces of the files. Alone it always
// does. Beside others it does if Local is set, only this machine reaches the listener, and no file is that
// of a web workspace, whose callers are those with its tokens, or has its id.
func (c *Config) keepsLocal() bool {
	others := func(w Workspace) bool { return w.Platform == event.Web || w.ID == localID }
	return len(c.Workspaces) == 0 || c.Local && isLoopback(c.Listen) && !slices.ContainsFunc(c.Workspaces, others)
}

// localID is the id of the built-in workspace.
const localID = "local"

// local returns the built-in workspace, which the daemon gives its token.
func local(agent string) Workspace {
	w := NewWorkspace(localID, event.Web, agent)
	w.Config = &access.Config{Local: true}
	return w
}

// IsLocal reports whether a workspace is the built-in one.
func IsLocal(c adapters.Config) bool {
	web, ok := c.(*access.Config)
	return ok && web.Local
}

// HasLocal reports whether a configuration has the built-in workspace.
func (c *Config) HasLocal() bool {
	return slices.ContainsFunc(c.Workspaces, func(w Workspace) bool { return IsLocal(w.Config) })
}

// NewWorkspace returns a workspace with the default settings and no account.
func NewWorkspace(id string, platform event.Platform, agent string) Workspace {
	return Workspace{
		ID:       id,
		Platform: platform,
		Settings: Settings{Agent: agent, Policy: ingest.DefaultPolicy(), Turns: turn.DefaultConfig()},
		Context:  assembly.Window{Turns: 50, Bytes: 100_000, Thread: 20},
		Rows:     []string{runs.RowAnswer},
		Commands: ingest.DefaultCommands(),
		Backfill: backfill.DefaultConfig(),
	}
}

// defaults returns the configuration that parley.yaml changes.
func defaults() *Config {
	agent := defaultAgent()
	agent.ID, agent.Kind, agent.Config = "echo", "echo", new(echo.Config)
	return &Config{
		Listen:            "127.0.0.1:8484",
		Store:             Store{Engine: SQLite, Path: "data/parley.db"},
		Log:               Log{Level: "info", Format: "auto"},
		Glob:              "workspaces/*.yaml",
		Local:             true,
		Shutdown:          10 * time.Second,
		RememberedWindows: journal.DefaultRemembered,
		Retention:         journal.DefaultRetention(),
		Attachments:       attach.DefaultConfig(),
		OperatorAPI:       OperatorAPI{Dir: "data"},
		Console:           Console{Listen: "127.0.0.1:8485"},
		Alerts:            defaultAlerts(),
		Tracing:           Tracing{Sample: 1},
		Agents:            []Agent{agent},
	}
}
