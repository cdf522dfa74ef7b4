package daemon

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/adapters"
	"parley/config"
)

// checkTime bounds the wait for the answers of all platforms to a check.
const checkTime = 3 * time.Second

// Found is a finding about a workspace, or about the daemon itself.
type Found struct {
	Workspace string // empty for the daemon
	// Key of the workspace's file, such as "slack.bot_token", or of parley.yaml.
	adapters.Finding
	// Unasked says that the platform gave no answer. Words are the reason then.
	Unasked bool
}

// Check reports whether the daemon could start, tries the bucket of attachments, and asks the
// platforms of a configuration whether its workspaces have the access that they need. It asks
// all at once, within three seconds. The findings are those of the daemon, then those of the
// workspaces in their order.
func Check(ctx context.Context, c *config.Config) []Found {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	found := make([][]Found, 2+len(c.Workspaces))
	public := cmp.Or(strings.TrimSuffix(c.PublicURL, "/"), BaseURL(c.Listen))
	var asking sync.WaitGroup
	asking.Go(func() { found[0] = checkStart(ctx, c) })
	asking.Go(func() { found[1] = checkFiles(ctx, c.Attachments) })
	for i, w := range c.Workspaces {
		platform, _ := config.Platform(w.Platform) // the configuration is checked
		if checker, ok := platform.New(w.ID, w.Config).(adapters.Checker); ok {
			asking.Go(func() { found[2+i] = checkOne(ctx, w, checker, wants(public, w)) })
		}
	}
	asking.Wait()
	return slices.Concat(found...)
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

// wants returns the facts about the settings of a workspace, or of one of its channels, that
// matter to its platform. public is the address of our HTTP server.
func wants(public string, w config.Workspace) adapters.Wants {
	everywhere := append(slices.Collect(maps.Values(w.Channels)), w.Settings)
	return adapters.Wants{
		Everybody: slices.ContainsFunc(everywhere, func(s config.Settings) bool { return s.Policy.AllowUsers == nil }),
		AnyServer: slices.ContainsFunc(everywhere, func(s config.Settings) bool { return s.Policy.AllowServers == nil }),
		Hook:      public + path.Join("/hooks", string(w.Platform), w.ID),
		Reactions: slices.ContainsFunc(everywhere, func(s config.Settings) bool { return s.Policy.Reactions }),
		MissedAge: w.Backfill.MaxAge, MissedMessages: w.Backfill.Messages,
	}
}
