package daemon

import (
	"context"
	"fmt"

	"parley/assembly/turn"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
)

// workspace finds the workspace that a line belongs to. Without a configuration
// it is made as it is met.
func (p *player) workspace(ctx context.Context, platform event.Platform, id string) (*config.Workspace, error) {
	if id == "" {
		id = p.usual(platform)
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
	return w, p.ingest.Configure(ctx, list)
}

// usual is where a line that names no workspace belongs: the configuration's
// first one of its platform.
func (p *player) usual(platform event.Platform) string {
	for _, w := range p.current.Load().config.Workspaces {
		if w.Platform == platform {
			return w.ID
		}
	}
	return defaultWorkspace
}

func (p *player) configured(platform event.Platform, id string) (*config.Workspace, error) {
	c := p.current.Load().config
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

func (p *player) ingestWorkspace(platform event.Platform, w *config.Workspace) ingest.Workspace {
	return ingest.Workspace{
		ID: w.ID, Platform: platform, Normalizer: normalizers[platform], Names: p.directory, Facts: p.directory.Facts(platform),
		Settings: func(channel string) ingest.Settings { return ingestSettings(w, channel) },
		Introduce: func(envelope event.Envelope, known event.Self) event.Self {
			if tells := introductions[platform]; tells != nil && known.UserID == "" {
				if self, ok := tells(envelope); ok {
					p.directory.Learn(platform, self)
				}
			}
			return known
		},
	}
}

// turnSettings resolves what holds in a channel. Workspaces of two platforms
// that share an id have the same settings.
func (p *player) turnSettings(workspace, channel string) turn.Settings {
	for _, platform := range event.Platforms {
		if w, err := p.configured(platform, workspace); err == nil {
			return turn.Settings{Config: w.Channel(channel).Turns, Window: w.Context}
		}
	}
	w := config.NewWorkspace(workspace, "", "")
	return turn.Settings{Config: w.Turns, Window: w.Context}
}
