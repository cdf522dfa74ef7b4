package call

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/adapters/httpcall"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/wake"
)

// Client makes the calls of one app in one team. It is safe for concurrent use.
type Client struct {
	API          *slack.Client
	Base         *url.URL         // address of the Web API; its path ends in a slash
	Transport    *http.Transport  // of every connection to Slack
	Timeout      time.Duration    // bounds a call
	BotToken     secret.Value     // authorizes the calls
	Now          func() time.Time // the clock
	TokenRefused wake.Signal      // is set if Slack has refused the bot token in a call

	web      *caller
	paces    *sync.Map                  // of *pace, by method
	self     atomic.Pointer[event.Self] // nil until Slack has answered auth.test
	team     atomic.Pointer[url.URL]    // of the team's pages; nil as self
	teamName atomic.Pointer[string]     // nil as self
	refusals rests                      // features that Slack refuses in this workspace
}

// Options are the settings of a Client.
type Options struct {
	URL                string // base address of the Web API; a method's name is appended
	BotToken, AppToken secret.Value
	Timeout            time.Duration // bounds a call
}

// New returns a client. It opens no connection.
func New(options Options) *Client {
	base, err := url.Parse(strings.TrimSuffix(options.URL, "/") + "/")
	if err != nil {
		base = &url.URL{} // every call then fails with an error about the address
	}
	transport := httpcall.NewTransport()
	web := &caller{client: httpcall.NewClient(transport), rests: new(rests)}
	return &Client{
		API: slack.New(options.BotToken.Reveal(), slack.OptionAppLevelToken(options.AppToken.Reveal()),
			slack.OptionAPIURL(base.String()), slack.OptionHTTPClient(web)),
		Base: base, Transport: transport, Timeout: options.Timeout, BotToken: options.BotToken,
		Now: time.Now, TokenRefused: wake.NewSignal(), web: web, paces: new(sync.Map),
	}
}

// Inherit takes over the paces, the rate limits and the identity of an earlier client, if that one has
// the same token. It reports whether it has.
func (c *Client) Inherit(old *Client) bool {
	if !old.BotToken.Equal(c.BotToken.Reveal()) {
		return false
	}
	c.paces, c.web.rests = old.paces, old.web.rests
	c.self.Store(old.self.Load())
	c.team.Store(old.team.Load())
	c.teamName.Store(old.teamName.Load())
	return true
}

// Do makes a request that slack-go does not make, such as an upload. Its errors are those of every call.
func (c *Client) Do(request *http.Request) (*http.Response, error) {
	return c.web.do("upload", request)
}

// Outside makes a request to an address that is no method. An answer with any status is no error.
func (c *Client) Outside(request *http.Request) (*http.Response, error) {
	response, _, err := httpcall.Do(c.web.client, request, maxAnswer)
	c.web.meter.Count("response_url", response)
	return response, err
}

// Meter returns the meter of every call.
func (c *Client) Meter() *httpcall.Meter { return &c.web.meter }

// AuthTest calls auth.test and stores our identity. The returned header lists the
// granted scopes.
func (c *Client) AuthTest(ctx context.Context) (event.Self, http.Header, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	answer, err := c.API.AuthTestContext(ctx)
	if err != nil {
		return event.Self{}, nil, MarkRefused("bot_token", fmt.Errorf("ask slack who we are: %w", err))
	}
	self := event.Self{TeamID: answer.TeamID, EnterpriseID: answer.EnterpriseID, UserID: answer.UserID, BotID: answer.BotID}
	if self.UserID == "" {
		return event.Self{}, nil, errors.New("ask slack who we are: the answer has no user id")
	}
	c.self.Store(&self)
	c.teamName.Store(&answer.Team)
	if team, ok := adapters.ParseAddress(answer.URL); ok {
		c.team.Store(team)
	}
	return self, answer.Header, nil
}

// KnownSelf returns our identity if Slack has answered auth.test; nil before.
func (c *Client) KnownSelf() *event.Self { return c.self.Load() }

// Self returns our identity. It asks Slack if that has not been asked yet.
func (c *Client) Self(ctx context.Context) (event.Self, error) {
	if self := c.self.Load(); self != nil {
		return *self, nil
	}
	self, _, err := c.AuthTest(ctx)
	return self, err
}

// TeamName returns the team's name. It asks Slack if that has not been asked yet.
func (c *Client) TeamName(ctx context.Context) (string, error) {
	if c.teamName.Load() == nil {
		if _, _, err := c.AuthTest(ctx); err != nil {
			return "", err
		}
	}
	return *c.teamName.Load(), nil
}

// TeamURL returns the address of the team's pages. It asks Slack if that has not been asked yet.
func (c *Client) TeamURL(ctx context.Context) (*url.URL, error) {
	if c.team.Load() == nil {
		if _, _, err := c.AuthTest(ctx); err != nil {
			return nil, err
		}
	}
	if team := c.team.Load(); team != nil {
		return team, nil
	}
	return nil, errors.New("slack names no address of the team")
}
