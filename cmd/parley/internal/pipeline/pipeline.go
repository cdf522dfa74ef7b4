// Package pipeline treats messages by the configuration in use: it records them, and runs the turns of the
// configured agents. It opens no connection and sends nothing: the daemon and a replay each add their own workspaces
// and their own outbox.
package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/assembly/turn"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/runs"
	"parley/ingest/work"
)

// Pipeline treats messages by the setup in use. It has no workspaces before the first call of Ingest.Configure, and
// asks no agents before the first call of Use.
type Pipeline struct {
	*Current
	Journal *journal.Journal
	Work    *work.Scheduler
	Ingest  *ingest.Ingest
	Turns   *turn.Runner

	agents agentMaker
	log    *slog.Logger
	queues map[string]bool // the agents that ever had a work queue for their turns; true for those that have turns now
}

// Outbox tells people what an agent or Parley itself says.
type Outbox interface {
	turn.Outbox
	ingest.Notifier
}

// Observer sees the result of each envelope, and the end of each attempt of a run.
type Observer interface {
	ingest.Observer
	turn.Observer
}

// Parts are the components that a Pipeline uses.
type Parts struct {
	Pauses     *ingest.Pauses    // nil for none
	Strangers  *ingest.Strangers // nil for none
	Current    *Current          // without a setup yet
	Journal    *journal.Journal
	Work       *work.Scheduler
	Workspaces turn.Workspaces
	Names      turn.Names
	Outbox     Outbox
	Files      turn.Files
	History    turn.History // nil for none
	Copies     turn.Copier  // nil for none
	Tokens     turn.Tokens  // nil for none
	Observer   Observer
	Version    string // of the program, for the servers of tools
	Log        *slog.Logger
	Now        func() time.Time
}

// New wires a Pipeline.
func New(p Parts) *Pipeline {
	j := p.Journal
	turns := turn.New(turn.Parts{
		Runs: j.Runs, Workstreams: j.Workstreams, Threads: j.Threads, Deliveries: j.Outbox,
		Work: p.Work, Outbox: p.Outbox, Files: p.Files, History: p.History, Copies: p.Copies, Observer: p.Observer, Log: p.Log, Now: p.Now,
		Workspaces: p.Workspaces, Agents: p.Current, Mentions: config.Mentions, Names: p.Names, Tokens: p.Tokens,
	})
	return &Pipeline{
		Current: p.Current, Journal: j, Work: p.Work, Turns: turns,
		Ingest: ingest.New(ingest.Parts{Journal: j, Work: p.Work, Turns: turns, Observer: p.Observer, Notices: p.Outbox, Pauses: p.Pauses, Strangers: p.Strangers, Log: p.Log, Now: p.Now}),
		agents: agentMaker{files: p.Files, version: p.Version, log: p.Log, now: p.Now}, log: p.Log, queues: map[string]bool{},
	}
}

// Self returns the account of a run's workspace.
func (p *Pipeline) Self(run *runs.Run) event.Self { return p.Ingest.Self(run.Platform, run.Workspace) }

// ServeAgents starts a work queue for the turns of each new agent. A work queue stays until
// claim ends. That of a removed agent takes no turns: they go to its heir, or to a node that has the agent.
// Active runs end with running. The calls must not be concurrent.
func (p *Pipeline) ServeAgents(claim, running context.Context, workers *sync.WaitGroup) {
	agents := p.Setup().Agents
	for id, serves := range p.queues {
		if _, kept := agents[id]; serves && !kept {
			p.queues[id] = false
			p.Work.Resize(work.Turns, id, 0)
			p.log.Info("an agent was removed; its turns go to the first agent", "agent", id)
		}
	}
	for id, a := range agents {
		_, known := p.queues[id]
		if p.queues[id] = true; known {
			p.Work.Resize(work.Turns, id, a.slots())
			continue
		}
		workers.Go(func() {
			if err := p.Turns.Serve(claim, running, id, a.slots()); err != nil {
				p.log.Error("component ended", "component", "turns of "+id, "err", err)
			}
		})
	}
}
