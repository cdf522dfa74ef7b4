// Package bridge connects a chat without an adapter of its own. A program of the operator connects both.
//
// The program posts what people write to the workspace's hook, and gets each post as a signed request. It does a request with
// the same id once, so that each request may be repeated.
package bridge

import (
	"net/http"

	"parley/adapters"
	"parley/adapters/httpcall"
	"parley/ingest/event"
)

// Adapter is one program. It is safe for concurrent use.
type Adapter struct {
	Normalizer
	workspace string
	config    Config
	client    *http.Client
	meter     httpcall.Meter
}

// Editing is the Adapter of a program that changes posts.
type Editing struct{ *Adapter }

var (
	_ adapters.Adapter          = (*Adapter)(nil)
	_ adapters.Hook             = (*Adapter)(nil)
	_ adapters.Sender           = (*Adapter)(nil)
	_ adapters.Dispatcher       = (*Adapter)(nil)
	_ adapters.ButtonSender     = (*Adapter)(nil)
	_ adapters.CardSender       = (*Adapter)(nil)
	_ adapters.WorkingIndicator = (*Adapter)(nil)
	_ adapters.Reactor          = (*Adapter)(nil)
	_ adapters.Metered          = (*Adapter)(nil)
	_ adapters.Editor           = Editing{}
	_ adapters.PartialFormatter = Editing{}
)

// Platform describes the programs.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.Bridge, Title: "a program of your own", Config: func() adapters.Config { return new(DefaultConfig()) },
		New:        func(workspace string, c adapters.Config) adapters.Adapter { return New(workspace, *c.(*Config)) },
		Normalizer: Normalizer{}, Draft: Draft,
		Setup: &adapters.Setup{
			Title: "Another chat, by a program of your own", Note: "adapters/web/bridge/README.md has such a program for IRC, and describes the requests.",
			Fields: []adapters.Field{
				{Key: "token", Title: "Token of the program", Secret: true, Made: true},
				{Key: "url", Title: "Address of the program", Default: "http://127.0.0.1:8700", Form: `deliver: {url: "%s",`},
				{Key: "secret", Title: "Secret that signs the requests to it", Secret: true, Made: true, Form: `  secret: "%s"}`},
			},
		},
		Conversation: func(workspace, channel string) event.ThreadKey { return threadKey(workspace, channel, "") },
	}
}

// New returns the adapter of a workspace. The config passed Validate.
func New(workspace string, config Config) adapters.Adapter {
	a := &Adapter{workspace: workspace, config: config, client: httpcall.NewClient(httpcall.NewTransport())}
	if config.Edits {
		return Editing{a}
	}
	return a
}

// UseMeter implements adapters.Metered.
func (a *Adapter) UseMeter(m adapters.Meter) { a.meter.To = m }
