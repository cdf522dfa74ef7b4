package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/adapters"
	agents "parley/adapters/agent"
	"parley/adapters/web/access"
	"parley/cmd/parley/internal/boot"
	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/ingest"
)

// checkTime bounds the wait for the answers of all platforms to a check.
const checkTime = 3 * time.Second

// Found is a finding about a workspace, about an agent, or about the daemon itself.
type Found struct {
	Workspace, Agent string // their ids; both are empty for the daemon
	// Key of the workspace's file, such as "slack.bot_token", or of parley.yaml.
	adapters.Finding
	// Unasked says that the platform, or the agent's server, gave no clear answer. Words are the reason then.
	Unasked bool
}

// Ask reports whether the daemon could start, tries the bucket of attachments, asks the
// platforms of a configuration whether its workspaces have the access that they need, and the servers of its
// agents whether they would answer. It asks all at once, within three seconds. The findings are those
// of the daemon, then those of the workspaces and of the agents in their order.
func Ask(ctx context.Context, c *config.Config) []Found {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	found := make([][]Found, 2+len(c.Workspaces)+len(c.Agents))
	public := cmp.Or(strings.TrimSuffix(c.PublicURL, "/"), boot.BaseURL(c.Listen))
	var asking sync.WaitGroup
	asking.Go(func() { found[0] = checkStart(ctx, c) })
	asking.Go(func() { found[1] = checkFiles(ctx, c.Attachments) })
	for i, w := range c.Workspaces {
		platform, _ := config.Platform(w.Platform) // the configuration is checked
		if checker, ok := platform.New(w.ID, w.Config).(adapters.Checker); ok {
			asking.Go(func() { found[2+i] = checkOne(ctx, w, checker, Wants(public, c, w)) })
		}
	}
	for i, a := range c.Agents {
		kind, _ := config.Kind(a.Kind) // the configuration is checked
		if checker, ok := kind.New(a.Config, nil).(agents.Checker); ok {
			asking.Go(func() { found[2+len(c.Workspaces)+i] = checkAgent(ctx, i, a.ID, checker) })
		}
	}
	asking.Wait()
	return slices.Concat(found...)
}

// AskWorkspace asks the platform of a configured workspace. public is the address of our HTTP server.
func AskWorkspace(ctx context.Context, c *config.Config, id, public string) (list []operator.Finding) {
	w := c.Workspace(id)
	platform, _ := config.Platform(w.Platform) // the configuration is checked
	checker, ok := platform.New(w.ID, w.Config).(adapters.Checker)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	for _, f := range checkOne(ctx, *w, checker, Wants(public, c, *w)) {
		state := operator.FindingWarning
		switch {
		case f.Unasked:
			state = operator.FindingUnknown
		case f.Fault:
			state = operator.FindingFault
		case f.Note:
			state = operator.FindingNote
		}
		list = append(list, operator.Finding{State: state, Key: f.Key, Words: f.Words})
	}
	return list
}

func checkOne(ctx context.Context, w config.Workspace, checker adapters.Checker, wants adapters.Wants) []Found {
	findings, err := checker.Check(ctx, wants)
	all := make([]Found, len(findings), len(findings)+1)
	for i, f := range findings {
		f.Key = string(w.Platform) + "." + f.Key
		all[i] = Found{Workspace: w.ID, Finding: f}
	}
	if err != nil {
		all = append(all, Found{Workspace: w.ID, Finding: adapters.Finding{Key: string(w.Platform), Words: "no answer from the platform: " + err.Error()}, Unasked: true})
	}
	return all
}

// checkAgent asks the server of the agent at an index of the configuration.
func checkAgent(ctx context.Context, i int, id string, checker agents.Checker) (all []Found) {
	at := fmt.Sprintf("agents[%d]", i)
	findings, err := checker.Check(ctx)
	for _, f := range findings {
		f.Key = at + "." + f.Key
		all = append(all, Found{Agent: id, Finding: f})
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("none within %v", checkTime)
	}
	if err != nil {
		all = append(all, Found{Agent: id, Finding: adapters.Finding{Key: at, Words: "no clear answer from the agent: " + err.Error()}, Unasked: true})
	}
	return all
}

// Wants returns the facts about the settings of a workspace, or of one of its channels, that
// matter to its platform. public is the address of our HTTP server.
func Wants(public string, c *config.Config, w config.Workspace) adapters.Wants {
	everywhere := append(slices.Collect(maps.Values(w.Channels)), w.Settings)
	return adapters.Wants{
		Everybody: slices.ContainsFunc(everywhere, func(s config.Settings) bool { return s.Policy.Everybody() }),
		AnyServer: slices.ContainsFunc(everywhere, func(s config.Settings) bool { return s.Policy.AllowServers == nil }),
		Hook:      public + path.Join("/hooks", string(w.Platform), w.ID),
		Reactions: slices.ContainsFunc(everywhere, func(s config.Settings) bool { return s.Policy.Reactions }),
		Groups:    slices.ContainsFunc(everywhere, func(s config.Settings) bool { return len(s.Policy.AllowGroups) > 0 }) || approversInGroups(c, everywhere),
		Reacts:    mayReact(c, w.ID),
		MissedAge: w.Backfill.MaxAge, MissedMessages: w.Backfill.Messages,
	}
}

// approversInGroups reports whether the agent of some settings has a user group among its approvers.
func approversInGroups(c *config.Config, everywhere []config.Settings) bool {
	return slices.ContainsFunc(c.Agents, func(a config.Agent) bool {
		answers := func(s config.Settings) bool { return s.Agent == a.ID }
		isGroup := func(entry string) bool { return strings.HasPrefix(entry, ingest.GroupPrefix) }
		return a.Config != nil && slices.ContainsFunc(everywhere, answers) && slices.ContainsFunc(a.Config.Bounds().Approvers, isGroup)
	})
}

// mayReact reports whether an agent, or the holder of a token, may add reactions somewhere in a workspace.
func mayReact(c *config.Config, workspace string) bool {
	in := func(place string) bool { return place == workspace || strings.HasPrefix(place, workspace+":") }
	for _, a := range c.Agents {
		if slices.ContainsFunc(a.Tools.Post, in) {
			return true
		}
	}
	for _, w := range c.Workspaces {
		own, _ := w.Config.(*access.Config)
		if own != nil && slices.ContainsFunc(own.Tokens, func(t access.Token) bool { return slices.ContainsFunc(t.Posts, in) }) {
			return true
		}
	}
	return false
}
