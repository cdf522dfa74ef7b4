package call

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/httpcall"
	"parley/config/secret"
)

// Client makes the calls of one bot. It is safe for concurrent use.
type Client struct {
	Base      *url.URL         // address of the API
	Transport *http.Transport  // of every connection to Discord
	Timeout   time.Duration    // of one call
	Now       func() time.Time // the clock
	Paces     Paces
	Meter     httpcall.Meter // of every call

	session *discordgo.Session
	token   secret.Value
	prefix  string // of the addresses of calls
}

// Options are the settings of a client.
type Options struct {
	URL     string        // address of the API
	Token   secret.Value  // the bot's, without the prefix "Bot "
	Timeout time.Duration // bounds a call
}

// logOnce directs discordgo's log, which is a variable of its package.
var logOnce sync.Once

// New returns a client. It opens no connection.
func New(options Options) *Client {
	logOnce.Do(func() {
		discordgo.Logger = func(_, _ int, format string, args ...any) {
			slog.Default().Warn("discordgo reports a problem", "text", fmt.Sprintf(format, args...))
		}
	})
	base, _ := adapters.ParseAddress(options.URL)
	c := &Client{
		Base:      cmp.Or(base, new(url.URL)), // every download then fails with an error about the address
		Transport: httpcall.NewTransport(), Timeout: options.Timeout, Now: time.Now,
		token: options.Token, prefix: strings.TrimSuffix(options.URL, "/"),
	}
	c.session, _ = discordgo.New("Bot " + options.Token.Reveal()) // New cannot fail
	c.session.Client = &http.Client{Transport: once{httpcall.NewClient(c.Transport), &c.Paces, &c.Meter}}
	c.session.UserAgent = "DiscordBot (https://github.com/bwmarrin/discordgo, " + discordgo.VERSION + ") parley"
	return c
}

// Inherit takes over the rate limits of an earlier client, if that one has the same token.
func (c *Client) Inherit(old *Client) {
	if old.token.Equal(c.token.Reveal()) {
		c.Paces.inherit(&old.Paces)
	}
}

// Get calls a route that only reads.
func (c *Client) Get(ctx context.Context, path string, answer any) error {
	return c.Call(ctx, http.MethodGet, path, "", nil, answer)
}

// Send calls a route that changes something. A nil body sends none.
func (c *Client) Send(ctx context.Context, method, path string, body, answer any) error {
	if body == nil {
		return c.Call(ctx, method, path, "", nil, answer)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return adapters.Permanently("the call cannot be encoded: " + err.Error())
	}
	return c.Call(ctx, method, path, "application/json", raw, answer)
}

// Call makes one call and decodes its answer, unless answer is nil. Its errors are
// *adapters.SendError. It bypasses discordgo's rate limiter, which sleeps without a context:
// each call gets a bucket of its own.
func (c *Client) Call(ctx context.Context, method, path, contentType string, body []byte, answer any) error {
	if ctx.Err() != nil { // the context may end without a signal
		return &adapters.SendError{Failure: adapters.NotSent, Err: context.Cause(ctx)}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	bucket := discordgo.NewRatelimiter().GetBucket("")
	bucket.Lock()
	raw, err := c.session.RequestWithLockedBucket(method, c.prefix+path, contentType, body, bucket, 0,
		discordgo.WithContext(ctx), discordgo.WithRetryOnRatelimit(false), discordgo.WithRestRetries(0))
	if err != nil {
		return callError(err)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return &adapters.SendError{Failure: adapters.Unclear, Err: fmt.Errorf("decode the answer: %w: %s", err, otherServer)}
	}
	return nil
}
