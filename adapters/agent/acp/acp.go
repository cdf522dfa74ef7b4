// Package acp is an agent that is a program on this machine, such as a coding agent. It speaks the Agent Client Protocol on its standard
// input and output: https://agentclientprotocol.com.
//
// A thread has a process of its own, which has one session of the protocol. A run prompts the session. If the program asks for a permission,
// the run ends with a question to the people, and the program waits in its process: the run that gets the answer goes on with the prompt.
package acp

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/remote"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/event"
)

var (
	_ turn.Agent         = (*Agent)(nil)
	_ turn.KeepsSessions = (*Agent)(nil)
	_ turn.OffersChoices = (*Agent)(nil)
	_ agent.Checker      = (*Agent)(nil)
	_ agent.Program      = (*Agent)(nil)
)

// Kind describes programs that speak the Agent Client Protocol.
func Kind() agent.Kind {
	return agent.Kind{
		Name: "acp", Config: func() agent.Config { c := defaults(); return &c },
		New: func(c agent.Config, files agent.Files) turn.Agent { return New(*c.(*Config), files) },
	}
}

func defaults() Config {
	c := Config{Processes: 4, Idle: 10 * time.Minute, Permissions: Ask, Config: remote.DefaultConfig(), Reading: remote.DefaultReading()}
	c.Timeout, c.FirstByte, c.AnswerWithin = 30*time.Minute, 2*time.Minute, time.Hour
	return c
}

// The values of Config.Permissions, which says how the program's requests for a permission end.
const (
	Ask  = "ask"  // the agent's approvers decide
	Deny = "deny" // each one is rejected
)

// Config is the configuration of one program.
type Config struct {
	// Command is the program and its arguments. The program is looked for in PATH.
	Command []string `yaml:"command"`
	// Dir is the folder in which the program works. A relative one begins at the working folder of the daemon.
	Dir string `yaml:"dir"`
	// Env are its environment variables, beside PATH, HOME and LANG.
	Env map[string]secret.Value `yaml:"env"`
	// Processes bounds the processes that run at the same time. One that is idle for Idle ends.
	Processes int           `yaml:"processes"`
	Idle      time.Duration `yaml:"idle"`
	// Permissions is Ask or Deny.
	Permissions string `yaml:"permissions"`
	// MCP are servers of the Model Context Protocol that the program may use.
	MCP            []agent.ToolServer `yaml:"mcp"`
	remote.Config  `yaml:",inline"`
	remote.Reading `yaml:",inline"`
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Validate returns every fault by key. The faults contain no configured value.
func (c Config) Validate() event.FieldErrors {
	var faults event.FieldErrors
	faults.Check(len(c.Command) > 0 && strings.TrimSpace(c.Command[0]) != "", "command", "is required: the program and its arguments, such as [claude-code-acp]")
	faults.Check(c.Dir != "", "dir", "is required: the folder in which the program works, such as /srv/project")
	for name, value := range c.Env {
		faults.Check(variable.MatchString(name), "env", "must have names of environment variables: letters, digits and _")
		faults.Check(!strings.Contains(value.Reveal(), "\x00"), "env", "must have values without a zero byte")
	}
	faults.Check(c.Processes > 0, "processes", "must be at least 1")
	faults.Check(c.Idle > 0, "idle", "must be more than 0s")
	faults.Check(c.Permissions == Ask || c.Permissions == Deny, "permissions", "must be ask or deny")
	for i, server := range c.MCP {
		at := fmt.Sprintf("mcp[%d].", i)
		_, isAddress := adapters.ParseAddress(server.URL)
		faults.Check(isAddress, at+"url", "must be the http or https address of the server, such as https://tools.example.com/mcp, without credentials")
		same := slices.ContainsFunc(c.MCP[:i], func(other agent.ToolServer) bool { return other.URL == server.URL })
		faults.Check(!same, at+"url", "is the address of an earlier server: name each server once")
	}
	c.Config.Check(&faults)
	c.Reading.Check(&faults)
	return faults
}

// Agent is one program, with a process for each thread. It does not bound the number and the time of its runs; its caller enforces
// Config.Bounds.
type Agent struct {
	config Config
	files  agent.Files
	client *remote.Client // makes the errors, and hides the values of Env in them
	pool   *pool
	log    *slog.Logger
	// look is the time between two looks at an open question, and patience that for the end of a cancelled prompt.
	look, patience time.Duration
}

// New returns an agent that starts no process before its first run. It removes the copies of files of daemons that were killed.
func New(config Config, files agent.Files) *Agent {
	removeLeft()
	var hidden []secret.Value
	for _, value := range config.Env {
		hidden = append(hidden, value)
	}
	for _, server := range config.MCP {
		hidden = append(hidden, server.Token)
	}
	a := &Agent{config: config, files: files, client: remote.New(config.Config, "", nil, hidden...), log: slog.New(slog.DiscardHandler), look: lookTime, patience: cancelTime}
	a.pool = newPool(a)
	return a
}

// KeepsSessions implements turn.KeepsSessions.
func (*Agent) KeepsSessions() {}

// OffersChoices implements turn.OffersChoices.
func (*Agent) OffersChoices() {}

// Log implements agent.Program.
func (a *Agent) Log(log *slog.Logger) { a.log = log }

// Close implements agent.Program.
func (a *Agent) Close() { a.pool.close() }
