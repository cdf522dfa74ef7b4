package testapp

import (
	"context"
	"testing"
	"time"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/discord"
	"parley/adapters/discord/discordtest"
	"parley/config/secret"
	"parley/ingest/event"
)

// The ids of the fake's server, channels and people.
const (
	Garden, Room, Direct = "700000000000000001", "700000000000000002", "700000000000000003"
	Mara, Ash            = "700000000000000004", "700000000000000005"
)

// StartServer starts a fake with a server, a channel, and two people. One of them has direct
// messages with the bot.
func StartServer(t *testing.T, options discordtest.Options) *discordtest.Server {
	t.Helper()
	s, err := discordtest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.AddUser(discordtest.User{ID: Mara, Username: "mara", GlobalName: "Mara"})
	s.AddUser(discordtest.User{ID: Ash, Username: "ash", GlobalName: "Ash"})
	s.AddGuild(discordtest.Guild{ID: Garden, Name: "garden", Nicks: map[string]string{}})
	s.SetChannel(discordtest.Channel{ID: Room, Guild: Garden, Name: "general"})
	s.SetChannel(discordtest.Channel{ID: Direct, Type: discordtest.Direct, User: Mara})
	return s
}

// NewAdapter returns an adapter for a fake, with one shard and short time limits.
func NewAdapter(s *discordtest.Server, change func(*discord.Config)) *discord.Adapter {
	config := discord.DefaultConfig()
	config.Token, config.APIURL, config.Shards, config.PostRate = secret.New(discordtest.Token), s.URL(), 1, 0
	if change != nil {
		change(&config)
	}
	adapter := discord.New("acme", config)
	limits := &adapter.Live.Limits
	limits.IdentifyEvery, limits.InvalidMin, limits.InvalidMax = 0, 0, time.Millisecond
	limits.BackoffMin, limits.BackoffMax, limits.Look = time.Millisecond, 10*time.Millisecond, 10*time.Millisecond
	adapter.ServersWait = time.Second
	adapter.UseState(adaptertest.NewState())
	return adapter
}

// NewDirectory returns a directory that has only our identity and a state.
func NewDirectory(self event.Self, state adapters.State) adapters.Directory {
	return directory{self, state}
}

type directory struct {
	self  event.Self
	state adapters.State
}

func (d directory) Self() event.Self { return d.self }

func (directory) ChannelType(string) event.ChannelType { return "" }

func (directory) User(context.Context, string) (adapters.User, bool) {
	return adapters.User{}, false
}

func (d directory) State() adapters.State { return d.state }
