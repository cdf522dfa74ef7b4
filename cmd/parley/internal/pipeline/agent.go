package pipeline

import (
	"log/slog"
	"reflect"
	"time"

	"parley/adapters"
	agents "parley/adapters/agent"
	"parley/adapters/agent/toolserver"
	"parley/assembly/turn"
	"parley/config"
)

// Agent is a configured agent, ready to be asked.
type Agent struct {
	config.Agent
	turn.Profile
	Servers []*toolserver.Client // whose tools it may call
}

// agentMaker makes the clients of agents.
type agentMaker struct {
	files   agents.Files
	version string
	log     *slog.Logger
	now     func() time.Time
}

// take returns the client of a configured agent: the old one if its settings are the same.
func (m agentMaker) take(old Agent, c config.Agent) Agent {
	if old.Profile.Agent != nil && reflect.DeepEqual(old.Agent, c) {
		return old
	}
	kind, _ := config.Kind(c.Kind) // the configuration is checked
	bounds := c.Config.Bounds()
	old.close()
	asked := kind.New(c.Config, m.files)
	if program, ok := asked.(agents.Program); ok {
		program.Log(m.log.With("agent", c.ID))
	}
	return Agent{Agent: c, Servers: m.servers(c.Config), Profile: turn.Profile{
		ID: c.ID, Timeout: bounds.Timeout, MaxBytes: bounds.MaxBytes, AnswerWithin: bounds.AnswerWithin, Show: c.Show, Files: c.Files, QuietReply: c.QuietReply, ImageHosts: c.ImageHosts, Agent: asked,
	}}
}

// servers returns the clients of the servers whose tools an agent may call. They connect at their first use.
func (m agentMaker) servers(config agents.Config) (list []*toolserver.Client) {
	if user, ok := config.(agents.ToolUser); ok {
		for _, server := range user.ToolServers() {
			list = append(list, toolserver.New(server, m.version, m.now))
		}
	}
	return list
}

// approvers returns the users of a platform who may answer the agent's approvals; empty for
// every admitted one.
func (a Agent) approvers(platform adapters.Platform) (ids []string) {
	if a.Config == nil {
		return nil
	}
	for _, id := range a.Config.Bounds().Approvers {
		ids = append(ids, platform.KnownPerson(id))
	}
	return ids
}

// close ends the agent's processes, and the sessions at the servers whose tools it may call.
func (a Agent) close() {
	if program, ok := a.Profile.Agent.(agents.Program); ok {
		program.Close()
	}
	for _, server := range a.Servers {
		server.Close()
	}
}

// slots returns the maximum number of concurrent runs of the agent.
func (a Agent) slots() int { return a.Config.Bounds().MaxConcurrent }
