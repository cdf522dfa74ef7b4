package slack

import (
	"cmp"
	"context"
	_ "embed"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/adapters/slack/call"
	"parley/adapters/slack/live"
	"parley/adapters/slack/payload"
	"parley/adapters/slack/read"
	"parley/adapters/slack/send"
	"parley/ingest/event"
)

// Adapter is one Slack app in one team. It is safe for concurrent use. The rooms that it embeds
// have most of its abilities.
type Adapter struct {
	payload.Normalizer
	*read.Reader
	*send.Sender
	Client *call.Client   // makes the calls of every room
	Live   *live.Receiver // receives the events

	config       Config
	greeter      *send.Greeter
	scopesLogged atomic.Bool // the missing scopes are logged
}

var (
	_ adapters.Adapter          = (*Adapter)(nil)
	_ adapters.Connector        = (*Adapter)(nil)
	_ adapters.Hook             = (*Adapter)(nil)
	_ adapters.Sender           = (*Adapter)(nil)
	_ adapters.Editor           = (*Adapter)(nil)
	_ adapters.Halver           = (*Adapter)(nil)
	_ adapters.DirectOpener     = (*Adapter)(nil)
	_ adapters.Linker           = (*Adapter)(nil)
	_ adapters.PartialFormatter = (*Adapter)(nil)
	_ adapters.Streamer         = (*Adapter)(nil)
	_ adapters.Finder           = (*Adapter)(nil)
	_ adapters.StreamFinder     = (*Adapter)(nil)
	_ adapters.Ephemeral        = (*Adapter)(nil)
	_ adapters.ButtonSender     = (*Adapter)(nil)
	_ adapters.WorkingIndicator = (*Adapter)(nil)
	_ adapters.Reactor          = (*Adapter)(nil)
	_ adapters.Backfiller       = (*Adapter)(nil)
	_ adapters.ContextReader    = (*Adapter)(nil)
	_ adapters.Fetcher          = (*Adapter)(nil)
	_ adapters.Namer            = (*Adapter)(nil)
	_ adapters.Viewer           = (*Adapter)(nil)
	_ adapters.MentionNamer     = (*Adapter)(nil)
	_ adapters.PlaceNamer       = (*Adapter)(nil)
	_ adapters.ChannelTyper     = (*Adapter)(nil)
	_ adapters.Grouper          = (*Adapter)(nil)
	_ adapters.Stateful         = (*Adapter)(nil)
	_ adapters.Metered          = (*Adapter)(nil)
)

//go:embed manifest.yaml
var manifest string

// Platform describes Slack.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.Slack, Title: "Slack", Config: func() adapters.Config { return new(DefaultConfig()) },
		New:        func(workspace string, c adapters.Config) adapters.Adapter { return New(workspace, *c.(*Config)) },
		Normalizer: payload.Normalizer{}, Self: payload.SelfOf, Asks: true, IsUser: payload.IsUser, IsChannel: payload.IsChannel, IsServer: payload.IsTeam, IsApp: payload.IsApp, IsGroup: payload.IsGroup, IsMention: payload.IsMention,
		MessageOf: payload.MessageOf, Conversation: payload.Conversation, NewThread: payload.NewThread, ThreadUnder: payload.ThreadUnder, Beside: payload.Beside, Draft: payload.Draft,
		Setup: &adapters.Setup{
			Note:     "Make an app at https://api.slack.com/apps, From a manifest, with what parley init --manifest slack prints. Install it, and make an app-level token with connections:write.",
			Manifest: manifest,
			Fields: []adapters.Field{
				{Key: "app_token", Title: "App-level token (xapp-…)", Secret: true, Env: "SLACK_APP_TOKEN"},
				{Key: "bot_token", Title: "Bot token (xoxb-…)", Secret: true, Env: "SLACK_BOT_TOKEN"},
				{Key: "api_url", Title: "Address of the API", Default: DefaultConfig().APIURL, Unasked: true},
			},
		},
	}
}

// New returns the adapter of a workspace. The Config must have passed Validate. New
// opens no connection.
func New(workspace string, config Config) *Adapter {
	client := call.New(call.Options{URL: config.APIURL, BotToken: config.BotToken, AppToken: config.AppToken, Timeout: config.Timeout})
	greeter, reader := send.NewGreeter(client, config.SuggestedPrompts), read.New(client, workspace)
	noted := func(p *payload.Payload) {
		greeter.Request(p)
		if p.ChangesGroups() {
			reader.ForgetGroups()
		}
	}
	return &Adapter{
		config:  config,
		Client:  client,
		greeter: greeter,
		Live:    live.New(client, workspace, live.Settings{Sockets: config.Sockets, SigningSecret: config.SigningSecret}, noted),
		Reader:  reader,
		Sender: send.New(client, send.Settings{
			PostRate: config.PostRate, FileOver: config.FileOver, Preview: config.Preview, PreviewEvery: config.PreviewEvery,
			Working: config.Working, WorkingText: config.WorkingText, WorkingEmoji: config.WorkingEmoji,
		}),
	}
}

// UseMeter implements adapters.Metered.
func (a *Adapter) UseMeter(m adapters.Meter) { a.Client.Meter().To = m }

// Inherit takes over the paces, the rate limits, the identity and the types of channels of the workspace's
// previous adapter, if that one has the same token.
func (a *Adapter) Inherit(old adapters.Adapter) {
	if old, ok := old.(*Adapter); ok && a.Client.Inherit(old.Client) {
		a.Reader.Inherit(old.Reader)
	}
}

// Handler implements adapters.Hook.
func (a *Adapter) Handler(inbox adapters.Inbox, guard *guard.Guard) http.Handler {
	return a.Live.Handler(inbox, guard)
}

// HookOnly reports whether the mode is http.
func (a *Adapter) HookOnly() bool { return a.config.Mode == ModeHTTP }

// Connections implements adapters.Connector. Each node has sockets of its own.
func (a *Adapter) Connections() []adapters.Connection { return []adapters.Connection{{Run: a.Run}} }

// Run asks Slack for our identity, reports it, and blocks until ctx ends. Meanwhile
// payloads arrive over the sockets that Run keeps open, or at the hook. If Slack
// refuses the credentials, Run returns a *adapters.RefusedError.
func (a *Adapter) Run(ctx context.Context, inbox adapters.Inbox, link adapters.Link) error {
	link.Log = cmp.Or(link.Log, slog.New(slog.DiscardHandler))
	self, header, err := a.Client.AuthTest(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if granted, known := grantedScopes(header); known {
		a.logMissingScopes(granted, link.Wants(), link.Log)
	}
	var greeter sync.WaitGroup
	defer greeter.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	greeter.Go(func() { a.greeter.Run(ctx, link) })
	if a.config.Mode == ModeSocket {
		return a.Live.RunSockets(ctx, inbox, self, link)
	}
	return a.Live.RunHook(ctx, self, link)
}
