package discord

import (
	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/live"
	"parley/adapters/discord/memory"
	"parley/adapters/discord/payload"
	"parley/adapters/discord/read"
	"parley/adapters/discord/send"
	"parley/ingest/event"
)

// Adapter is one bot. It is safe for concurrent use. The rooms that it embeds have most of its
// abilities.
type Adapter struct {
	payload.Normalizer
	*read.Reader
	*send.Sender
	Client *call.Client   // makes the calls of every room
	Live   *live.Receiver // receives the events

	memory *memory.Memory // of every room
}

var (
	_ adapters.Adapter          = (*Adapter)(nil)
	_ adapters.Connector        = (*Adapter)(nil)
	_ adapters.Stateful         = (*Adapter)(nil)
	_ adapters.Metered          = (*Adapter)(nil)
	_ adapters.Sender           = (*Adapter)(nil)
	_ adapters.DirectOpener     = (*Adapter)(nil)
	_ adapters.Linker           = (*Adapter)(nil)
	_ adapters.Editor           = (*Adapter)(nil)
	_ adapters.PartialFormatter = (*Adapter)(nil)
	_ adapters.Finder           = (*Adapter)(nil)
	_ adapters.Lister           = (*Adapter)(nil)
	_ adapters.ButtonSender     = (*Adapter)(nil)
	_ adapters.WorkingIndicator = (*Adapter)(nil)
	_ adapters.Reactor          = (*Adapter)(nil)
	_ adapters.SelfSigner       = (*Adapter)(nil)
	_ adapters.Fetcher          = (*Adapter)(nil)
	_ adapters.Namer            = (*Adapter)(nil)
	_ adapters.Grouper          = (*Adapter)(nil)
	_ adapters.Viewer           = (*Adapter)(nil)
	_ adapters.MentionNamer     = (*Adapter)(nil)
	_ adapters.PlaceNamer       = (*Adapter)(nil)
	_ adapters.PlaceKeeper      = (*Adapter)(nil)
	_ adapters.Backfiller       = (*Adapter)(nil)
	_ adapters.SlowHistory      = (*Adapter)(nil)
	_ adapters.ContextReader    = (*Adapter)(nil)
	_ adapters.Checker          = (*Adapter)(nil)
)

// Platform describes Discord.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.Discord, Title: "Discord", Config: func() adapters.Config { return new(DefaultConfig()) },
		New:        func(workspace string, c adapters.Config) adapters.Adapter { return New(workspace, *c.(*Config)) },
		Normalizer: payload.Normalizer{}, Self: payload.SelfOf, Asks: true, IsUser: payload.IsID, IsChannel: payload.IsID, IsServer: payload.IsID, IsRole: payload.IsID, IsMention: payload.IsMention,
		MessageOf: payload.MessageOf, Conversation: payload.ThreadKey, Draft: payload.Draft,
		Setup: &adapters.Setup{
			Note: "Make an application at https://discord.com/developers/applications and turn on its Message Content Intent.",
			Fields: []adapters.Field{
				{Key: "token", Title: "Token of the bot", Secret: true, Env: "DISCORD_TOKEN"},
				{Key: "api_url", Title: "Address of the API", Default: DefaultConfig().APIURL, Unasked: true},
			},
		},
	}
}

// New returns the adapter of a workspace. The Config must have passed Validate. New opens no
// connection.
func New(workspace string, config Config) *Adapter {
	c, m := call.New(call.Options{URL: config.APIURL, Token: config.Token, Timeout: config.Timeout}), memory.New()
	r := read.New(c, m, workspace)
	a := &Adapter{
		Normalizer: payload.Normalizer{AutoThread: config.AutoThread}, Client: c, memory: m, Reader: r,
		Sender: send.New(c, m, workspace, send.Settings{
			PostRate: config.PostRate, FileOver: config.FileOver, Preview: config.Preview, PreviewEvery: config.PreviewEvery,
			Working: config.Working, Reply: config.Reply,
		}, r.List),
	}
	a.Live = live.New(c, m, workspace, live.Settings{Token: config.Token, Shards: config.Shards, Commands: config.Commands}, a.warnPublic)
	return a
}

// UseState implements adapters.Stateful.
func (a *Adapter) UseState(state adapters.State) { a.memory.State = state }

// UseMeter implements adapters.Metered.
func (a *Adapter) UseMeter(m adapters.Meter) { a.Client.Meter.To = m }

// Inherit takes over the rate limits of the workspace's previous adapter, if that one has the
// same token.
func (a *Adapter) Inherit(old adapters.Adapter) {
	if old, ok := old.(*Adapter); ok {
		a.Client.Inherit(old.Client)
	}
}

// Connections returns a connection for each configured shard, or one that consists of the shards
// which Discord recommends.
func (a *Adapter) Connections() []adapters.Connection { return a.Live.Connections() }
