package discord

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/discord/payload"
	"parley/adapters/httpcall"
	"parley/ingest/event"
)

// Adapter is one bot. It is safe for concurrent use.
type Adapter struct {
	payload.Normalizer
	workspace string
	config    Config
	rest      rest
	base      *url.URL // address of the REST API
	files     *http.Client

	state    adapters.State
	guilds   *guilds
	coverage coverage
	names    *adapters.Names // of fetched messages' authors
	nonces   nonces
	warned   sync.Once // warnPublic
	paces    paces
	limits   gatewayLimits
	now      func() time.Time
}

var (
	_ adapters.Adapter          = (*Adapter)(nil)
	_ adapters.Connector        = (*Adapter)(nil)
	_ adapters.Stateful         = (*Adapter)(nil)
	_ adapters.Sender           = (*Adapter)(nil)
	_ adapters.Editor           = (*Adapter)(nil)
	_ adapters.PartialFormatter = (*Adapter)(nil)
	_ adapters.Finder           = (*Adapter)(nil)
	_ adapters.Lister           = (*Adapter)(nil)
	_ adapters.ButtonSender     = (*Adapter)(nil)
	_ adapters.WorkingIndicator = (*Adapter)(nil)
	_ adapters.SelfSigner       = (*Adapter)(nil)
	_ adapters.Fetcher          = (*Adapter)(nil)
	_ adapters.Namer            = (*Adapter)(nil)
	_ adapters.MentionNamer     = (*Adapter)(nil)
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
		Normalizer: payload.Normalizer{}, Self: payload.SelfOf, IsUser: payload.IsID, IsChannel: payload.IsID, IsServer: payload.IsID, IsMention: payload.IsMention,
	}
}

// New returns the adapter of a workspace. The Config must have passed Validate. New opens no
// connection.
func New(workspace string, config Config) *Adapter {
	transport := httpcall.NewTransport()
	base, _ := adapters.ParseAddress(config.APIURL)
	base = cmp.Or(base, new(url.URL)) // every download then fails with an error about the address
	a := &Adapter{
		Normalizer: payload.Normalizer{AutoThread: config.AutoThread}, workspace: workspace, config: config, base: base,
		files:  httpcall.NewFileClient(transport, base, "the address is not discord's", fileHosts...),
		guilds: newGuilds(), limits: defaultGatewayLimits(), now: time.Now,
	}
	a.names = adapters.NewNames(a)
	a.rest = newREST(config, transport, &a.paces)
	return a
}

// Limits returns the configured limits.
func (a *Adapter) Limits() adapters.Limits {
	limits := adapters.Limits{
		PostRate: a.config.PostRate, PostText: maxText, Timeout: a.config.Timeout, FileOver: a.config.FileOver,
		Preview: a.config.Preview, PreviewEvery: a.config.PreviewEvery, Sign: a.config.Working != WorkingOff,
	}
	if a.config.Working == WorkingTyping {
		limits.SignEvery = typingEvery
	}
	return limits
}

// UseState implements adapters.Stateful.
func (a *Adapter) UseState(state adapters.State) { a.state = state }

// Inherit takes over the rate limits of the workspace's previous adapter, if that one has the
// same token.
func (a *Adapter) Inherit(old adapters.Adapter) {
	if old, ok := old.(*Adapter); ok && old.config.Token.Equal(a.config.Token.Reveal()) {
		a.paces.inherit(&old.paces)
	}
}

// Connections returns a connection for each configured shard, or one that consists of the shards
// which Discord recommends.
func (a *Adapter) Connections() (all []adapters.Connection) {
	if a.config.Shards == 0 {
		return []adapters.Connection{{Name: "shards", Split: a.recommended}}
	}
	return a.shards(a.config.Shards)
}

// shards returns a connection for each shard.
func (a *Adapter) shards(count int) (all []adapters.Connection) {
	for id := range count {
		all = append(all, adapters.Connection{Name: "shard-" + strconv.Itoa(id), Exclusive: true, Run: func(ctx context.Context, inbox adapters.Inbox, link adapters.Link) error {
			return a.newShard(id, count, inbox, link).run(ctx)
		}})
	}
	return all
}
