package bluebubbles

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/adapters/httpcall"
	"parley/ingest/event"
)

// Adapter is one account on a BlueBubbles server. It is safe for concurrent use.
type Adapter struct {
	Normalizer
	workspace string
	config    Config
	client    *http.Client

	info   atomic.Pointer[serverInfo] // nil until the server has answered server/info
	chats  sync.Map                   // the guid last seen of each chat, by the chat's name
	read   sync.Map                   // the message after which a chat was last marked as read, by the chat's name
	reader reader
	warned sync.Once

	linked    chan struct{} // closed when link is set
	link      adapters.State
	firstLink sync.Once
	now       func() time.Time
}

var (
	_ adapters.Adapter          = (*Adapter)(nil)
	_ adapters.Connector        = (*Adapter)(nil)
	_ adapters.Hook             = (*Adapter)(nil)
	_ adapters.Sender           = (*Adapter)(nil)
	_ adapters.Lister           = (*Adapter)(nil)
	_ adapters.WorkingIndicator = (*Adapter)(nil)
	_ adapters.Fetcher          = (*Adapter)(nil)
	_ adapters.Namer            = (*Adapter)(nil)
)

// senders is the namespace of sender ids.
const senders = "bb"

// Platform describes BlueBubbles.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.BlueBubbles, Senders: senders, Title: "iMessage", Config: func() adapters.Config { return new(DefaultConfig()) },
		New:        func(workspace string, c adapters.Config) adapters.Adapter { return New(workspace, *c.(*Config)) },
		Normalizer: Normalizer{}, ID: chatName,
	}
}

// New returns the adapter of a workspace. The Config must have passed Validate. New opens no
// connection.
func New(workspace string, config Config) *Adapter {
	return &Adapter{
		Normalizer: Normalizer{newWakeWords(config)}, workspace: workspace, config: config,
		client: httpcall.NewClient(newTransport()), reader: newReader(), linked: make(chan struct{}), now: time.Now,
	}
}

// Limits returns the configured limits. Messages shows no incomplete text, so there is no
// preview.
func (a *Adapter) Limits() adapters.Limits {
	info := a.info.Load()
	return adapters.Limits{
		PostRate: a.config.PostRate, Timeout: a.config.Timeout, Preview: adapters.PreviewOff,
		Sign: a.config.Method == MethodPrivateAPI || a.config.Method == MethodAuto && (info == nil || info.PrivateAPI && info.Helper),
	}
}

// Connections returns the connection of the hook, which each node has, and the poller.
func (a *Adapter) Connections() []adapters.Connection {
	return []adapters.Connection{{Name: "hook", Run: a.runHook}, {Name: "poll", Exclusive: true, Run: a.runPoll}}
}

// runHook lets the hook read missed messages, and reports our identity.
func (a *Adapter) runHook(ctx context.Context, _ adapters.Inbox, link adapters.Link) error {
	a.firstLink.Do(func() {
		a.link = link.State
		close(a.linked)
	})
	info, err := a.askInfo(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	link.Up(info.self())
	<-ctx.Done()
	return nil
}

// runPoll reads what the webhooks missed, at the start and then at each poll. It also keeps the
// registration of the webhook right. After a failure the supervisor runs it again, so it reads
// at once.
func (a *Adapter) runPoll(ctx context.Context, inbox adapters.Inbox, link adapters.Link) error {
	if link.Wants.Everybody {
		a.warned.Do(func() { link.Log.Warn(everybodyWords) })
	}
	for up := false; ; up = true {
		info, err := a.askInfo(ctx)
		if err == nil {
			if err := a.register(ctx, link.Wants.Hook); err != nil && ctx.Err() == nil {
				link.Log.Warn("the webhook cannot be registered; messages arrive at the next poll", "err", err)
			}
			err = a.readAll(ctx, inbox, link.State)
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
