package pipeline

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	agents "parley/adapters/agent"
	"parley/adapters/web/tools"
	"parley/assembly/turn"
	"parley/assembly/workstream"
	"parley/config"
	"parley/config/secret"
)

// Setup is one loaded configuration with its agents. It does not change after it came into use.
type Setup struct {
	Config *config.Config
	At     time.Time // when the configuration was read
	Agents map[string]Agent
}

// Current knows the setup in use. The zero Current has none. It may be used concurrently.
type Current struct{ setup atomic.Pointer[Setup] }

var _ turn.Agents = (*Current)(nil)

// Setup returns the setup in use; nil before the first one.
func (c *Current) Setup() *Setup { return c.setup.Load() }

// AgentIDs implements turn.Agents.
func (c *Current) AgentIDs() []string { return slices.Collect(maps.Keys(c.Setup().Agents)) }

// Profile implements turn.Agents.
func (c *Current) Profile(id string) (turn.Profile, bool) {
	a, ok := c.Setup().Agents[id]
	return a.Profile, ok
}

// Rows returns the kinds of rows of the runs of a workspace.
func (c *Current) Rows(workspace string) []string {
	if s := c.Setup(); s != nil {
		if w := s.Config.Workspace(workspace); w != nil {
			return w.Rows
		}
	}
	return nil
}

// Zone returns the time zone of a workspace.
func (c *Current) Zone(workspace string) *time.Location {
	if s := c.Setup(); s != nil {
		return s.Config.Zone(workspace)
	}
	return time.UTC
}

// Rights returns what an agent may do by the tools; the least if it is not configured.
func (c *Current) Rights(agent string) tools.Rights { return c.Setup().Agents[agent].Tools }

// ReplySecrets returns the secrets of the agents that may answer later, by agent.
func (c *Current) ReplySecrets() map[string]secret.Value {
	secrets := map[string]secret.Value{}
	for id, a := range c.Setup().Agents {
		if replier, ok := a.Config.(agents.Replier); ok {
			secrets[id] = replier.ReplySecret()
		}
	}
	return secrets
}

// Workstreams returns the setting of an agent that may launch workstreams. It leaves out agents that are not
// configured.
func (c *Current) Workstreams(agent string) (workstream.Config, bool) {
	agents := c.Setup().Agents
	a, ok := agents[agent]
	config := a.Workstreams
	config.Agents = slices.DeleteFunc(slices.Clone(config.Agents), func(id string) bool {
		_, known := agents[id]
		return !known
	})
	return config, ok
}

// CloseAgents ends the processes of the agents in use, after their last runs.
func (p *Pipeline) CloseAgents() {
	if s := p.Setup(); s != nil {
		for _, a := range s.Agents {
			a.close()
		}
	}
}

// Prepare makes the setup of a configuration. Agents whose settings are those of the setup in use keep their clients.
func (p *Pipeline) Prepare(c *config.Config) *Setup {
	next := &Setup{Config: c, At: p.agents.now().UTC(), Agents: map[string]Agent{}}
	before := p.Setup()
	if before == nil {
		before = &Setup{}
	}
	for _, a := range c.Agents {
		next.Agents[a.ID] = p.agents.take(before.Agents[a.ID], a)
	}
	return next
}

// Use brings a prepared setup into use. It returns the ids of the agents that the setup before had and this one lacks.
func (p *Pipeline) Use(next *Setup) (removed []string) {
	before := p.setup.Swap(next)
	if before == nil {
		return nil
	}
	for id, a := range before.Agents {
		if _, kept := next.Agents[id]; !kept {
			a.close()
			removed = append(removed, id)
		}
	}
	return removed
}
