package player

import (
	"cmp"
	"context"
	"errors"
	"time"

	"parley/adapters"
	"parley/assembly"
	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/listing"
	"parley/ingest/stream"
)

// tryUser is our own user in a workspace that has never been connected. It has the form of an id of each platform.
const tryUser = "100"

// silent is an agent that says nothing, for a trial that asks nobody.
type silent struct{}

// Run implements turn.Agent.
func (silent) Run(_ context.Context, _ assembly.Input, emit func(stream.Message) error) error {
	return emit(stream.Message{Type: stream.Answer, Text: "nobody was asked"})
}

// named gives one user the name that an operator chose. Other names come from Names; none if it is nil.
type named struct {
	ingest.Names
	id, name string
}

// User implements ingest.Names.
func (n named) User(ctx context.Context, id string) (adapters.User, bool) {
	if id == n.id && n.name != "" {
		return adapters.User{DisplayName: n.name}, true
	}
	if n.Names == nil {
		return adapters.User{}, false
	}
	return n.Names.User(ctx, id)
}

// Try plays an invented message with a configuration, on a scratch store that has the earlier messages of the thread.
// names knows people; nil for nobody. It asks the agent if the trial says so, and stores and sends nothing.
func Try(ctx context.Context, c *config.Config, j *journal.Journal, names ingest.Names, now time.Time, t operator.Trial, thread *listing.Thread) (operator.Played, error) {
	w := c.Workspace(t.Workspace)
	platform, _ := config.Platform(w.Platform) // the configuration is checked
	made := operator.Played{Place: listing.Life{Workspace: w.ID, Platform: w.Platform, Channel: t.Channel}}
	if platform.Draft == nil {
		return made, errors.New("nobody can try a message on " + platform.Title)
	}
	draft := adapters.Draft{
		Workspace: w.ID, Channel: t.Channel, Sender: t.Sender, Name: t.Name, Text: t.Text, Mentions: t.Mentions && platform.IsMention != nil, At: now, Type: event.ChannelRoom,
	}
	if thread != nil {
		draft.Thread, draft.Channel = thread.Key, thread.Channel
	}
	facts, err := newLiveFacts(ctx, j, w.ID, names)
	if err != nil {
		return made, err
	}
	facts.names = named{names, t.Sender, t.Name}
	facts.self.UserID = cmp.Or(facts.self.UserID, tryUser)
	draft.Self = facts.self
	if t.Direct && thread == nil {
		draft.Type = event.ChannelDirect
	} else if known := facts.ChannelType(draft.Channel); known != event.ChannelUnknown {
		draft.Type = known
	}
	if servers := w.Channel(draft.Channel).Policy.AllowServers; len(servers) > 0 {
		draft.Server = servers[0]
	}
	envelope := event.Envelope{Workspace: w.ID, Platform: w.Platform, Transport: "replay", ReceivedAt: now, Body: platform.Draft(draft)}
	err = onScratch(ctx, c, scope{w.Platform, w.ID}, facts, func(p *player) error {
		if err := p.recall(ctx, j, draft.Thread); err != nil {
			return err
		}
		if !t.Ask {
			for id, a := range p.Setup().Agents {
				a.Profile.Agent = silent{}
				p.Setup().Agents[id] = a
			}
		}
		return p.try(ctx, envelope, &made)
	})
	return made, err
}
