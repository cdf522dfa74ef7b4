package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	agents "parley/adapters/agent"
	"parley/adapters/agent/toolserver"
	"parley/adapters/web/tools"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/ingest/journal/runs"
)

// runTools are the functions that agents may call during a run: those for workstreams; and for models, Parley's own tools and those
// of other servers.
type runTools struct {
	*Daemon
	own tools.API
}

var _ turn.Tools = runTools{}

// Offered implements turn.Tools. The daemon remembers the offered functions until the attempt ends, so that a name means one function.
func (t runTools) Offered(ctx context.Context, run *runs.Run) (list []runinput.Tool, missing []string) {
	offers, missing := t.offers(ctx, run)
	for _, o := range offers {
		list = append(list, o.Tool)
	}
	if len(offers) > 0 {
		t.offered.Store(run.ID, offers)
	}
	return list, missing
}

// offer is a function with its name for the model.
type offer struct {
	runinput.Tool
	name   string             // its own
	server *toolserver.Client // nil for none
	ours   bool               // it is a tool of Parley; else one for workstreams, or of a server
}

// offers returns the functions for the agent of a run. Each keeps its own name, unless an earlier function uses that name: then
// its server's host precedes it.
func (t runTools) offers(ctx context.Context, run *runs.Run) (list []offer, missing []string) {
	for _, tool := range t.workstreams.Offered(run) {
		list = append(list, offer{Tool: tool, name: tool.Name})
	}
	a := t.Setup().Agents[run.Agent]
	if _, ok := a.Config.(agents.ToolUser); !ok {
		return list, nil
	}
	for _, tool := range t.own.Offered(run) {
		list = append(list, offer{Tool: tool, name: tool.Name, ours: true})
	}
	found := make([][]runinput.Tool, len(a.Servers))
	left := make([][]string, len(a.Servers))
	errs := make([]error, len(a.Servers))
	var asked sync.WaitGroup
	for i, server := range a.Servers {
		asked.Go(func() { found[i], left[i], errs[i] = server.Tools(ctx) })
	}
	asked.Wait()
	for i, server := range a.Servers {
		if errs[i] != nil {
			t.log.Warn("the tools of a server are missing", "agent", run.Agent, "run", run.ID, "server", server.Host(), "err", errs[i])
			why := "the server does not answer"
			if errors.Is(errs[i], toolserver.ErrAnswered) {
				why = errs[i].Error()
			}
			missing = append(missing, "The tools of "+server.Host()+" are missing in this run: "+why+".")
		}
		missing = append(missing, left[i]...)
		for _, tool := range found[i] {
			name := tool.Name
			tool.Server = server.Host()
			for n := 1; slices.ContainsFunc(list, func(o offer) bool { return runinput.Safe(o.Name) == runinput.Safe(tool.Name) }); n++ {
				if tool.Name = label(server.Host()) + "_" + name; n > 1 {
					tool.Name = fmt.Sprintf("%s_%d_%s", label(server.Host()), n, name)
				}
			}
			list = append(list, offer{Tool: tool, name: name, server: server})
		}
	}
	return list, missing
}

// label returns a host in the form of a part of a function's name.
func label(host string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, host)
}

// Call implements turn.Tools.
func (t runTools) Call(ctx context.Context, run *runs.Run, key string, call runinput.Call) (string, error) {
	known, _ := t.offered.Load(run.ID)
	list, _ := known.([]offer)
	i := slices.IndexFunc(list, func(o offer) bool { return o.Name == call.Name })
	switch {
	case i >= 0 && list[i].server != nil:
		call.Name = list[i].name
		return list[i].server.Call(ctx, run.ID+"/"+key, call), nil
	case i >= 0 && list[i].ours:
		return t.own.Call(ctx, run, key, call)
	}
	return t.workstreams.Call(ctx, run, key, call)
}
