package player

import (
	"context"
	"fmt"

	"parley/assembly/turn"
	"parley/cmd/parley/internal/pipeline"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
)

// workspace returns the workspace of a line. Without a configuration it makes the workspace
// when the first line names it.
func (p *player) workspace(ctx context.Context, platform event.Platform, id string) (*config.Workspace, error) {
	if id == "" {
		id = p.defaultFor(platform)
	}
	if w := p.workspaces[scope{platform, id}]; w != nil {
		return w, nil
	}
	w, err := p.configured(platform, id)
	if err != nil {
		return nil, err
	}
	p.workspaces[scope{platform, id}] = w
	var list []ingest.Workspace
	for at, w := range p.workspaces {
		list = append(list, p.ingestWorkspace(at.platform, w))
	}
	return w, p.Ingest.Configure(ctx, list)
}

// defaultFor returns the id of the workspace of a line that names none: the first configured
// workspace of the platform.
func (p *player) defaultFor(platform event.Platform) string {
	for _, w := range p.Setup().Config.Workspaces {
		if w.Platform == platform {
			return w.ID
		}
	}
	return defaultWorkspace
}

// configured returns the configured workspace, or a new one without a configuration and for
// defaultWorkspace.
func (p *player) configured(platform event.Platform, id string) (*config.Workspace, error) {
	c := p.Setup().Config
	for i := range c.Workspaces {
		if c.Workspaces[i].ID == id && c.Workspaces[i].Platform == platform {
			return &c.Workspaces[i], nil
		}
	}
	if p.Config != nil && id != defaultWorkspace {
		return nil, fmt.Errorf("workspace: the configuration has no %s workspace %q", platform, id)
	}
	w := config.NewWorkspace(id, platform, c.Agents[0].ID)
	w.Turns.Coalesce = 0
	return &w, nil
}

// ingestWorkspace returns a workspace in the form that ingest needs: names come from the
// recording's directory. The adapter of a configured workspace reads by its own settings, such
// as wake words; it opens no connection.
func (p *player) ingestWorkspace(name event.Platform, w *config.Workspace) ingest.Workspace {
	platform, _ := config.Platform(name)
	normalizer := platform.Normalizer
	if w.Config != nil {
		normalizer = platform.New(w.ID, w.Config)
	}
	var names ingest.Names = p.directory
	facts := p.directory.Facts(name)
	if p.live != nil {
		names, facts = p.live, p.live
	}
	var groups func(context.Context, string) []string
	if len(pipeline.GroupsOf(w, p.Setup().Agents, platform)) > 0 { // those of a payload are known, and no platform is asked
		groups = func(context.Context, string) []string { return nil }
	}
	return ingest.Workspace{
		ID: w.ID, Platform: name, Groups: groups, Senders: platform.Namespace(), Normalizer: normalizer, Names: names, Facts: facts,
		Settings: func(channel, parent string) ingest.Settings {
			return pipeline.IngestSettings(w, p.Setup().Agents, platform, channel, parent)
		},
		Introduce: func(envelope event.Envelope, known event.Self) event.Self {
			if platform.Self != nil && known.UserID == "" {
				if self, ok := platform.Self(envelope); ok {
					p.directory.Learn(name, self)
				}
			}
			return known
		},
	}
}

var (
	_ turn.Workspaces = (*player)(nil)
	_ turn.Names      = (*player)(nil)
)

// Settings implements turn.Workspaces.
func (p *player) Settings(at threads.Place) turn.Settings {
	w, _ := p.configured(at.Platform, at.Workspace) // nil for one that is not configured
	return pipeline.TurnSettings(w, at)
}

// Sight implements turn.Workspaces: an agent sees everything.
func (*player) Sight(context.Context, *runs.Run) (*runs.Sight, error) { return nil, nil }

// Name implements turn.Names.
func (p *player) Name(_ context.Context, _ *runs.Run, token string) (string, bool) {
	return p.directory.Token(token)
}

// Place implements turn.Names.
func (p *player) Place(_ context.Context, run *runs.Run) (event.Place, bool) {
	return p.directory.Place(run.Channel, run.Parent), true
}
