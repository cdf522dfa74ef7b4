package acp

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"parley/adapters"
	"parley/adapters/agent/remote"
)

// Check implements agent.Checker. It starts the program, asks what it can do, and ends it.
func (a *Agent) Check(ctx context.Context) ([]adapters.Finding, error) {
	p := &process{agent: a}
	err := p.begin(ctx)
	if p.conn != nil {
		defer func() { p.kill(); <-p.done }()
	}
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		return []adapters.Finding{{Key: "command", Words: "the agent can't answer: " + strings.TrimPrefix(err.Error(), "ask the agent: "), Fault: true}}, nil
	}
	found := []adapters.Finding{{Key: "command", Words: p.info.String(), Note: true}}
	if logins := p.info.logins(); logins != "" {
		found = append(found, adapters.Finding{Key: "env", Words: "the agent may need a login, with the program itself or by a key in env; it offers: " + logins, Note: true})
	}
	if len(a.config.MCP) > 0 && !p.info.AgentCapabilities.MCPCapabilities.HTTP {
		found = append(found, adapters.Finding{Key: "mcp", Words: "the agent uses no tools of servers at http addresses, so it does not get these"})
	}
	return found, nil
}

// String describes the program.
func (i *info) String() string {
	can := i.AgentCapabilities
	name := cmp.Or(remote.Plain(i.AgentInfo.Title, 80), remote.Plain(i.AgentInfo.Name, 80), "the agent")
	if v := remote.Plain(i.AgentInfo.Version, 40); v != "" {
		name += " " + v
	}
	list := []string{}
	for _, one := range []struct {
		has   bool
		words string
	}{
		{i.resumes(), "goes on with its sessions after a restart (session/resume)"},
		{!i.resumes() && can.LoadSession, "goes on with its sessions after a restart (session/load)"},
		{!i.resumes() && !can.LoadSession, "forgets its sessions at a restart"},
		{can.PromptCapabilities.Image, "takes pictures"},
		{can.PromptCapabilities.EmbeddedContext, "takes files"},
		{can.MCPCapabilities.HTTP, "uses tools of servers"},
	} {
		if one.has {
			list = append(list, one.words)
		}
	}
	return fmt.Sprintf("%s answers, with protocol version %d: it %s", name, version, strings.Join(list, ", "))
}
