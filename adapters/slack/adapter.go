package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/httpcall"
	"parley/adapters/slack/payload"
	"parley/ingest/event"
	"parley/ingest/wake"
)

// Adapter is one Slack app in one team. It is safe for concurrent use.
type Adapter struct {
	payload.Normalizer
	Workspace string // its name in thread keys
	config    Config
	base      *url.URL // address of the Web API; its path ends in a slash
	transport *http.Transport
	api       *slack.Client
	web       *caller
	files     *http.Client

	history   *history
	state     adapters.State
	greetings chan assistantGreeting // not yet shown

	self         atomic.Pointer[event.Self] // nil until Slack has answered auth.test
	tokenRefused wake.Signal                // is set if Slack has refused the bot token in a call
	withheld     wake.Signal                // is set if Slack withholds events
	scopesLogged atomic.Bool                // the missing scopes are logged
	refusals     rests                      // features that Slack refuses in this workspace
	now          func() time.Time           // for the hook and for refusals
	times        socketTimes
}

var (
	_ adapters.Adapter          = (*Adapter)(nil)
	_ adapters.Connector        = (*Adapter)(nil)
	_ adapters.Hook             = (*Adapter)(nil)
	_ adapters.Sender           = (*Adapter)(nil)
	_ adapters.Editor           = (*Adapter)(nil)
	_ adapters.PartialFormatter = (*Adapter)(nil)
	_ adapters.Streamer         = (*Adapter)(nil)
	_ adapters.Finder           = (*Adapter)(nil)
	_ adapters.StreamFinder     = (*Adapter)(nil)
	_ adapters.Ephemeral        = (*Adapter)(nil)
	_ adapters.ButtonSender     = (*Adapter)(nil)
	_ adapters.WorkingIndicator = (*Adapter)(nil)
	_ adapters.Fetcher          = (*Adapter)(nil)
	_ adapters.Namer            = (*Adapter)(nil)
	_ adapters.MentionNamer     = (*Adapter)(nil)
	_ adapters.Stateful         = (*Adapter)(nil)
)

// Platform describes Slack.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.Slack, Title: "Slack", Config: func() adapters.Config { return new(DefaultConfig()) },
		New:        func(workspace string, c adapters.Config) adapters.Adapter { return New(workspace, *c.(*Config)) },
		Normalizer: payload.Normalizer{}, Self: payload.SelfOf, IsUser: payload.IsUser, IsChannel: payload.IsChannel, IsServer: payload.IsTeam, IsMention: payload.IsMention,
	}
}

// New returns the adapter of a workspace. The Config must have passed Validate. New
// opens no connection.
func New(workspace string, config Config) *Adapter {
	base, err := url.Parse(strings.TrimSuffix(config.APIURL, "/") + "/")
	if err != nil {
		base = &url.URL{} // every call then fails with an error about the address
	}
	transport := httpcall.NewTransport()
	web := &caller{httpcall.NewClient(transport), new(rests)}
	return &Adapter{
		Workspace: workspace,
		config:    config,
		base:      base,
		transport: transport,
		api: slack.New(config.BotToken.Reveal(), slack.OptionAppLevelToken(config.AppToken.Reveal()),
			slack.OptionAPIURL(base.String()), slack.OptionHTTPClient(web)),
		web:          web,
		history:      new(history),
		tokenRefused: wake.NewSignal(),
		withheld:     wake.NewSignal(),
		greetings:    make(chan assistantGreeting, maxGreetings),
		files:        httpcall.NewFileClient(transport, base, "the bot may not read the file, or lacks the scope files:read", redirectDomains...),
		now:          time.Now,
		times:        defaultSocketTimes(),
	}
}

// Limits returns the configured limits, and Slack's limit for streams.
func (a *Adapter) Limits() adapters.Limits {
	limits := adapters.Limits{
		PostRate: a.config.PostRate, Timeout: a.config.Timeout, FileOver: a.config.FileOver,
		Preview: a.config.Preview, PreviewEvery: a.config.PreviewEvery, Sign: a.config.Working != WorkingOff,
	}
	if a.config.Working == WorkingStatus {
		limits.SignText, limits.SignEvery = maxStatus, statusEvery
	}
	return limits
}

// Connections implements adapters.Connector. Each node has sockets of its own.
func (a *Adapter) Connections() []adapters.Connection { return []adapters.Connection{{Run: a.Run}} }

// Run asks Slack for our identity, reports it, and blocks until ctx ends. Meanwhile
// payloads arrive over the sockets that Run keeps open, or at the hook. If Slack
// refuses the credentials, Run returns a *adapters.RefusedError.
func (a *Adapter) Run(ctx context.Context, inbox adapters.Inbox, link adapters.Link) error {
	link.Log = cmp.Or(link.Log, slog.New(slog.DiscardHandler))
	self, header, err := a.authTest(ctx)
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
	greeter.Go(func() { a.greetAll(ctx, link) })
	if a.config.Mode == ModeSocket {
		return a.runSockets(ctx, notingInbox{inbox, a}, self, link)
	}
	link.Up(self)
	return a.watch(ctx, link)
}

// watch blocks until ctx ends. It returns a *adapters.RefusedError earlier if Slack refuses
// the bot token in a call, and then in auth.test too. After Slack has withheld events, it
// reports that messages of every channel are missing.
func (a *Adapter) watch(ctx context.Context, link adapters.Link) (err error) {
	defer adapters.Recover(link.Log, &err)
	began, withheld, over := a.now(), a.withheld, (<-chan time.Time)(nil)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-withheld:
			withheld, over = nil, time.After(withheldFor)
		case <-over:
			since := a.now().Add(-withheldSince)
			if since.Before(began) { // the gap of the start has the older messages
				since = began
			}
			link.Missed("", since)
			withheld, over = a.withheld, nil
		case <-a.tokenRefused:
			var refused *adapters.RefusedError
			if _, _, err := a.authTest(ctx); errors.As(err, &refused) {
				return err
			}
		}
	}
}

// authTest calls auth.test and stores our identity. The returned header lists the
// granted scopes.
func (a *Adapter) authTest(ctx context.Context) (event.Self, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	answer, err := a.api.AuthTestContext(ctx)
	if err != nil {
		return event.Self{}, nil, markRefused("bot_token", fmt.Errorf("ask slack who we are: %w", err))
	}
	self := event.Self{TeamID: answer.TeamID, EnterpriseID: answer.EnterpriseID, UserID: answer.UserID, BotID: answer.BotID}
	if self.UserID == "" {
		return event.Self{}, nil, errors.New("ask slack who we are: the answer has no user id")
	}
	a.self.Store(&self)
	return self, answer.Header, nil
}
