package bluebubbles

import (
	"parley/adapters"
	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/live"
	"parley/adapters/bluebubbles/payload"
	"parley/adapters/bluebubbles/read"
	"parley/adapters/bluebubbles/send"
	"parley/ingest/event"
)

// Adapter is one account on a BlueBubbles server. It is safe for concurrent use. The rooms that it embeds
// have its abilities.
type Adapter struct {
	payload.Normalizer
	*live.Receiver
	*read.Reader
	*send.Sender

	config Config
	client *call.Client // makes the calls of every room
}

var (
	_ adapters.Adapter          = (*Adapter)(nil)
	_ adapters.Connector        = (*Adapter)(nil)
	_ adapters.Stateful         = (*Adapter)(nil)
	_ adapters.Metered          = (*Adapter)(nil)
	_ adapters.Hook             = (*Adapter)(nil)
	_ adapters.Sender           = (*Adapter)(nil)
	_ adapters.Lister           = (*Adapter)(nil)
	_ adapters.WorkingIndicator = (*Adapter)(nil)
	_ adapters.Reactor          = (*Adapter)(nil)
	_ adapters.DirectOpener     = (*Adapter)(nil)
	_ adapters.Fetcher          = (*Adapter)(nil)
	_ adapters.Namer            = (*Adapter)(nil)
	_ adapters.PlaceNamer       = (*Adapter)(nil)
	_ adapters.QuotedReader     = (*Adapter)(nil)
)

// Platform describes BlueBubbles.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.BlueBubbles, Senders: payload.Senders, Title: "iMessage", Config: func() adapters.Config { return new(DefaultConfig()) },
		New:        func(workspace string, c adapters.Config) adapters.Adapter { return New(workspace, *c.(*Config)) },
		Normalizer: payload.Normalizer{}, ID: payload.ConfiguredID, Conversation: payload.ThreadKey, Draft: payload.Draft,
		Setup: &adapters.Setup{
			ID: "imessage", Title: "iMessage, by a BlueBubbles server on a Mac", Note: "Install a BlueBubbles server on a Mac: https://bluebubbles.app.",
			Fields: []adapters.Field{
				{Key: "url", Title: "Address of the BlueBubbles server", Env: "BLUEBUBBLES_URL"},
				{Key: "password", Title: "Password of the server", Secret: true, Env: "BLUEBUBBLES_PASSWORD"},
				{Key: "wake", Title: "Words that wake the bot in a group, with commas", List: true, Optional: true},
				{Key: "allow_users", Block: "policy", Title: "Who may talk to it: phone numbers and addresses, with commas; none for everybody", List: true, Optional: true},
				{Key: "webhook_secret", Title: "Secret of the webhook", Secret: true, Made: true},
				{Key: "public_url", Block: adapters.MainFile, Title: "Address at which the server reaches Parley, such as http://192.168.1.20:8484; none if it runs on this machine", Optional: true},
				{Key: "listen", Block: adapters.MainFile, Title: "Address that Parley listens on, such as 0.0.0.0:8484 for other machines; none for 127.0.0.1:8484", Optional: true},
			},
		},
	}
}

// UseMeter implements adapters.Metered.
func (a *Adapter) UseMeter(m adapters.Meter) { a.client.Meter.To = m }

// New returns the adapter of a workspace. The Config must have passed Validate. New opens no
// connection.
func New(workspace string, config Config) *Adapter {
	client := call.New(workspace, call.Options{
		URL: config.URL, Password: config.Password, WebhookSecret: config.WebhookSecret, Method: config.Method, Timeout: config.Timeout, Poll: config.Poll,
	})
	return &Adapter{
		Normalizer: payload.NewNormalizer(config.Wake, config.Channels, config.Working == send.WorkingReaction),
		Receiver:   live.New(client, live.Settings{WebhookSecret: config.WebhookSecret, Poll: config.Poll}),
		Reader:     read.New(client),
		Sender:     send.New(client, send.Settings{PostRate: config.PostRate, Working: config.Working, ReadReceipts: config.ReadReceipts}),
		config:     config,
		client:     client,
	}
}
