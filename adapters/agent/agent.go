// Package agent describes the kinds of agents; each kind is a package below it.
package agent

import (
	"context"
	"io"
	"log/slog"
	"time"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/event"
)

// Kind describes a kind of agent. A new kind is a package with a function that returns its
// description, and a line in config.Kinds.
type Kind struct {
	Name string
	// Config returns a pointer to the kind's settings, with their defaults.
	Config func() Config
	// New returns an agent. The config passed Validate. The agent reads stored attachments
	// from files.
	New func(config Config, files Files) turn.Agent
	// Unmeasured says that no run of the kind reports tokens.
	Unmeasured bool
}

// Config is the settings of an agent: a pointer to a struct with yaml tags. In a file, its
// keys are siblings of id and kind.
type Config interface {
	// Validate returns every fault by key. The faults contain no configured value.
	Validate() event.FieldErrors
	Bounds() Bounds
}

// Modelled is a Config whose agent is a model.
type Modelled interface {
	Config
	// ModelName returns the name by which the server knows the model.
	ModelName() string
}

// Bounds are the bounds of an agent's runs.
type Bounds struct {
	Timeout       time.Duration // of one run
	MaxBytes      int64         // of a run's answer
	MaxConcurrent int           // number of concurrent runs
	AnswerWithin  time.Duration // of the wait for a later answer, and for an answer of people
	// Approvers are the users who may answer the agent's approvals, by the platform's id; empty
	// for every admitted one.
	Approvers []string
}

// Replier is a Config whose agent may answer later over our API, with this bearer token.
type Replier interface {
	ReplySecret() secret.Value
}

// ToolUser is a Config of a model that calls Parley's tools in the loop of its run, and those of other servers.
type ToolUser interface {
	ToolServers() []ToolServer
}

// ToolServer is a server of the Model Context Protocol.
type ToolServer struct {
	URL string `yaml:"url"`
	// Token is sent as a bearer token; unset for none.
	Token secret.Value `yaml:"token"`
	// Timeout bounds one call; 0 for 30 seconds.
	Timeout time.Duration `yaml:"timeout"`
}

// Checker is an agent that can find out whether its server would answer.
type Checker interface {
	// Check makes the cheapest request that tells, and begins no run. The keys of its findings are those
	// of the agent's settings. A refusal by the server, and a server that is not there, are findings. An
	// error says that the server gave no clear answer now.
	Check(ctx context.Context) ([]adapters.Finding, error)
}

// Files opens stored attachments by their File.Bucket and File.Path. ctx also bounds the
// reading.
type Files interface {
	Open(ctx context.Context, bucket, path string) (io.ReadCloser, error)
}

// Program is an agent that runs a program on this machine.
type Program interface {
	// Log takes the log for the program's words. It is called before the first run.
	Log(log *slog.Logger)
	// Close ends the program's processes, those of runs after their runs.
	Close()
}
