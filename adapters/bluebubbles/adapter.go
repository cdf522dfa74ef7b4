package bluebubbles

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/payload"
	"parley/adapters/httpcall"
	"parley/ingest/event"
)

// Adapter is one account on a BlueBubbles server. It is safe for concurrent use.
type Adapter struct {
	payload.Normalizer
	workspace string
	config    Config
	client    *http.Client

	info   atomic.Pointer[serverInfo] // nil until the server has answered server/info
	read   sync.Map                   // the message after which a chat was last marked as read, by the chat's name
	reader reader
	wants  atomic.Pointer[adapters.Wants] // of the last poll; nil on a node that does not poll
	warned sync.Once

	state adapters.State
	now   func() time.Time
}

var (
	_ adapters.Adapter          = (*Adapter)(nil)
	_ adapters.Connector        = (*Adapter)(nil)
	_ adapters.Stateful         = (*Adapter)(nil)
	_ adapters.Hook             = (*Adapter)(nil)
	_ adapters.Sender           = (*Adapter)(nil)
	_ adapters.Lister           = (*Adapter)(nil)
	_ adapters.WorkingIndicator = (*Adapter)(nil)
	_ adapters.Fetcher          = (*Adapter)(nil)
	_ adapters.Namer            = (*Adapter)(nil)
)

// Platform describes BlueBubbles.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.BlueBubbles, Senders: payload.Senders, Title: "iMessage", Config: func() adapters.Config { return new(DefaultConfig()) },
		New:        func(workspace string, c adapters.Config) adapters.Adapter { return New(workspace, *c.(*Config)) },
		Normalizer: payload.Normalizer{}, ID: payload.ConfiguredID,
	}
}

// New returns the adapter of a workspace. The Config must have passed Validate. New opens no
// connection.
func New(workspace string, config Config) *Adapter {
	return &Adapter{
		Normalizer: payload.NewNormalizer(config.Wake, config.Channels, config.Working == WorkingReaction), workspace: workspace, config: config,
		client: httpcall.NewClient(newTransport()), reader: newReader(), now: time.Now,
	}
}

// Limits returns the configured limits. Messages shows no incomplete text, so there is no
// preview.
func (a *Adapter) Limits() adapters.Limits {
	info := a.info.Load()
	private := a.config.Method == MethodPrivateAPI || a.config.Method == MethodAuto && (info == nil || info.PrivateAPI && info.Helper)
	return adapters.Limits{
		PostRate: a.config.PostRate, Timeout: a.config.Timeout, FileOver: fileOver,
		Preview: adapters.PreviewOff, Sign: private && a.config.Working != WorkingOff,
	}
}

// UseState implements adapters.Stateful. The hook of each node reads missed messages.
func (a *Adapter) UseState(state adapters.State) { a.state = state }

// Connections returns the poller.
func (a *Adapter) Connections() []adapters.Connection {
	return []adapters.Connection{{Exclusive: true, Run: a.poll}}
}

// poll keeps the registration of the webhook right, and reads the messages that the webhooks
// missed, at the start and then at each poll. After a failure the supervisor runs it again, so it
// reads at once.
func (a *Adapter) poll(ctx context.Context, inbox adapters.Inbox, link adapters.Link) error {
	if link.Wants().Everybody {
		a.warned.Do(func() { link.Log.Warn(everybodyWords) })
	}
	for up := false; ; up = true {
		a.wants.Store(new(link.Wants()))
		info, err := a.askInfo(ctx)
		if err == nil && !up { // a message that comes from now on is read, if its webhook is lost
			err = a.reading(ctx, func(*cursor) error { return nil })
		}
		if err == nil {
			if err := a.register(ctx, link.Wants().Hook); err != nil && ctx.Err() == nil {
				link.Log.Warn("the webhook cannot be registered; messages arrive at the next poll", "err", err)
			}
			err = a.readAll(ctx, inbox)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case !up:
			link.Up(info.self())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.config.Poll):
		}
	}
}
