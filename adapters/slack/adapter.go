package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/ingest/event"
)

// idlePerHost is the number of idle connections to Slack that are kept for later calls.
// It covers the deliveries that run at once when many threads are active.
const idlePerHost = 128

// Adapter is one Slack app in one team. It is safe for concurrent use.
type Adapter struct {
	Normalizer
	config Config
	base   *url.URL // address of the Web API; its path ends in a slash
	api    *slack.Client
	web    caller
	files  *http.Client

	history history

	self          atomic.Pointer[event.Self] // nil until Slack has answered auth.test
	scopesLogged  atomic.Bool                // the missing scopes are logged
	refusals      adapters.Rests             // features that Slack refuses in this workspace
	closedStreams closedStreams              // messages that are not open streams
	now           func() time.Time           // for the hook and for refusals
	bodyTimeout   time.Duration              // for the hook
	times         socketTimes
}

var (
	_ adapters.Adapter          = (*Adapter)(nil)
	_ adapters.Runner           = (*Adapter)(nil)
	_ adapters.Hook             = (*Adapter)(nil)
	_ adapters.Sender           = (*Adapter)(nil)
	_ adapters.Editor           = (*Adapter)(nil)
	_ adapters.PartialFormatter = (*Adapter)(nil)
	_ adapters.Streamer         = (*Adapter)(nil)
	_ adapters.Finder           = (*Adapter)(nil)
	_ adapters.StreamFinder     = (*Adapter)(nil)
	_ adapters.Ephemeral        = (*Adapter)(nil)
	_ adapters.WorkingIndicator = (*Adapter)(nil)
	_ adapters.Fetcher          = (*Adapter)(nil)
	_ adapters.Namer            = (*Adapter)(nil)
)

// New returns the adapter of a workspace. The Config must have passed Validate. New
// opens no connection.
func New(workspace string, config Config) *Adapter {
	base, err := url.Parse(strings.TrimSuffix(config.APIURL, "/") + "/")
	if err != nil {
		base = &url.URL{} // every call then fails with an error about the address
	}
	transport := newTransport()
	web := caller{newClient(transport), new(adapters.Rests)}
	return &Adapter{
		Normalizer: Normalizer{Workspace: workspace},
		config:     config,
		base:       base,
		api: slack.New(config.BotToken.Reveal(), slack.OptionAppLevelToken(config.AppToken.Reveal()),
			slack.OptionAPIURL(base.String()), slack.OptionHTTPClient(web)),
		web:         web,
		files:       newFileClient(transport, base),
		now:         time.Now,
		bodyTimeout: bodyTimeout,
		times:       defaultSocketTimes(),
	}
}

// Limits returns the configured limits, and Slack's limit for streams.
func (a *Adapter) Limits() adapters.Limits {
	return adapters.Limits{
		PostRate: a.config.PostRate, Timeout: a.config.Timeout, FileOver: a.config.FileOver,
		Preview: a.config.Preview, PreviewEvery: a.config.PreviewEvery, StreamAge: streamAge, Sign: a.config.Working != WorkingOff,
	}
}

// Run asks Slack for our identity, reports it, and blocks until ctx ends. Meanwhile
// payloads arrive over the sockets that Run keeps open, or at the hook. If Slack
// refuses the credentials, Run returns a *adapters.RefusedError.
func (a *Adapter) Run(ctx context.Context, inbox adapters.Inbox, link adapters.Link) error {
	if link.Log == nil {
		link.Log = slog.New(slog.DiscardHandler)
	}
	self, header, err := a.authTest(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if granted, known := grantedScopes(header); known {
		a.logMissingScopes(granted, link.Wants, link.Log)
	}
	if a.config.Mode == ModeSocket {
		return a.runSockets(ctx, inbox, self, link)
	}
	link.Up(self)
	<-ctx.Done()
	return nil
}

// authTest calls auth.test and stores our identity. The returned header lists the
// granted scopes.
func (a *Adapter) authTest(ctx context.Context) (event.Self, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	answer, err := a.api.AuthTestContext(ctx)
	if err != nil {
		return event.Self{}, nil, refusedCredentials(fmt.Errorf("ask slack who we are: %w", err))
	}
	self := event.Self{TeamID: answer.TeamID, EnterpriseID: answer.EnterpriseID, UserID: answer.UserID, BotID: answer.BotID}
	if self.UserID == "" {
		return event.Self{}, nil, errors.New("ask slack who we are: the answer has no user id")
	}
	a.self.Store(&self)
	return self, answer.Header, nil
}

// refusedCredentials marks an error that only the operator can fix.
// https://docs.slack.dev/reference/methods/auth.test#errors
func refusedCredentials(err error) error {
	var answer slack.SlackErrorResponse
	if !errors.As(err, &answer) {
		return err
	}
	hint := ""
	switch answer.Err {
	case "invalid_auth", "not_authed", "token_expired":
		hint = "check bot_token: it is the Bot User OAuth Token, which begins with xoxb-"
	case "not_allowed_token_type":
		hint = "bot_token is a token of another kind: it is the Bot User OAuth Token, which begins with xoxb-"
	case "token_revoked", "account_inactive":
		hint = "install the app in the workspace again, and set bot_token to its new token"
	default:
		return err
	}
	return &adapters.RefusedError{Err: err, Hint: hint}
}
