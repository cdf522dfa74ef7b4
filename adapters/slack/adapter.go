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

// idlePerHost is how many connections to Slack are kept for the next call: as
// many as there are deliveries under way when many threads speak at once.
const idlePerHost = 128

// Adapter is one Slack app in one team. It is safe for concurrent use.
type Adapter struct {
	Normalizer
	config Config
	base   *url.URL // of the Web API; its path ends in a slash
	api    *slack.Client
	web    caller
	files  *http.Client

	history history

	self        atomic.Pointer[event.Self] // nil until Slack has told it
	told        atomic.Bool                // what the app lacks
	refusals    refusals                   // what Slack does not take here
	ended       ended                      // messages that are no open streams
	now         func() time.Time           // of the hook, and of refusals
	bodyTimeout time.Duration              // of the hook
	times       socketTimes
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

// New makes the adapter of a workspace from a Config that Validate has passed.
// It opens nothing.
func New(workspace string, config Config) *Adapter {
	base, err := url.Parse(strings.TrimSuffix(config.APIURL, "/") + "/")
	if err != nil {
		base = &url.URL{} // every call then fails with words about the address
	}
	transport := newTransport()
	web := caller{newClient(transport)}
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

// Limits are the configured ones, and Slack's for streams.
func (a *Adapter) Limits() adapters.Limits {
	return adapters.Limits{
		PostRate: a.config.PostRate, Timeout: a.config.Timeout, FileOver: a.config.FileOver,
		Preview: a.config.Preview, PreviewEvery: a.config.PreviewEvery, StreamAge: streamAge, Sign: a.config.Working != WorkingOff,
	}
}

// Run asks Slack who we are, reports it, and waits for the end of ctx. What comes
// in arrives over the sockets that it keeps open meanwhile, or at the hook.
// Credentials that Slack refuses are a *adapters.RefusedError.
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
	if granted, told := grantedScopes(header); told {
		a.tell(granted, link.Wants, link.Log)
	}
	if a.config.Mode == ModeSocket {
		return a.runSockets(ctx, inbox, self, link)
	}
	link.Up(self)
	<-ctx.Done()
	return nil
}

// authTest calls auth.test and remembers who we are. The answer's header tells
// what we may do.
func (a *Adapter) authTest(ctx context.Context) (event.Self, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	answer, err := a.api.AuthTestContext(ctx)
	if err != nil {
		return event.Self{}, nil, refused(fmt.Errorf("ask slack who we are: %w", err))
	}
	self := event.Self{TeamID: answer.TeamID, EnterpriseID: answer.EnterpriseID, UserID: answer.UserID, BotID: answer.BotID}
	if self.UserID == "" {
		return event.Self{}, nil, errors.New("ask slack who we are: the answer names no user")
	}
	a.self.Store(&self)
	return self, answer.Header, nil
}

// refused marks an error that only the operator can mend.
// https://docs.slack.dev/reference/methods/auth.test#errors
func refused(err error) error {
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
		hint = "install the app in the workspace again, and put its new bot_token in place"
	default:
		return err
	}
	return &adapters.RefusedError{Err: err, Hint: hint}
}
