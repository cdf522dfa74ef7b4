package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/httpcall"
)

const (
	// maxAnswer bounds an answer of the API, in bytes. The longest answers are the channels of
	// a server and a page of 100 messages.
	maxAnswer = 32 << 20
	// minRetry is the wait after a 429 without a time. maxRetry bounds the wait: Discord's
	// longest window is an hour.
	minRetry = time.Second
	maxRetry = time.Hour
)

// rest makes the calls of the REST API.
type rest struct {
	session *discordgo.Session
	base    string
	timeout time.Duration // of one call
}

// logOnce directs discordgo's log, which is a variable of its package.
var logOnce sync.Once

func newREST(config Config, transport *http.Transport, paces *paces) rest {
	logOnce.Do(func() {
		discordgo.Logger = func(_, _ int, format string, args ...any) {
			slog.Default().Warn("discordgo reports a problem", "text", fmt.Sprintf(format, args...))
		}
	})
	session, _ := discordgo.New("Bot " + config.Token.Reveal()) // New cannot fail
	session.Client = &http.Client{Transport: once{httpcall.NewClient(transport), paces}}
	session.UserAgent = "DiscordBot (https://github.com/bwmarrin/discordgo, " + discordgo.VERSION + ") parley"
	return rest{session: session, base: strings.TrimSuffix(config.APIURL, "/"), timeout: config.Timeout}
}

// call makes one call and decodes its answer, unless answer is nil. Its errors are
// *adapters.SendError. It bypasses discordgo's rate limiter, which sleeps without a context:
// each call gets a bucket of its own.
func (r rest) call(ctx context.Context, method, path, contentType string, body []byte, answer any) error {
	if ctx.Err() != nil { // the context may end without a signal
		return &adapters.SendError{Failure: adapters.NotSent, Err: context.Cause(ctx)}
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	bucket := discordgo.NewRatelimiter().GetBucket("")
	bucket.Lock()
	raw, err := r.session.RequestWithLockedBucket(method, r.base+path, contentType, body, bucket, 0,
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

// get calls a route that only reads.
func (a *Adapter) get(ctx context.Context, path string, answer any) error {
	return a.rest.call(ctx, http.MethodGet, path, "", nil, answer)
}

// send calls a route that changes something. A nil body sends none.
func (a *Adapter) send(ctx context.Context, method, path string, body, answer any) error {
	if body == nil {
		return a.rest.call(ctx, method, path, "", nil, answer)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return adapters.Permanently("the call cannot be encoded: " + err.Error())
	}
	return a.rest.call(ctx, method, path, "application/json", raw, answer)
}

// once is discordgo's transport. It makes each request once, refuses requests of a route that
// rests, and turns answers that are no answers of the API into errors.
type once struct {
	client *http.Client
	paces  *paces
}

// RoundTrip implements http.RoundTripper.
func (o once) RoundTrip(request *http.Request) (*http.Response, error) {
	name := bucketOf(request)
	if left := o.paces.left(name, time.Now()); left > 0 {
		return nil, limited(left, scopeOf(name), "the route rests after a rate limit")
	}
	response, body, err := httpcall.Do(o.client, request, maxAnswer)
	if err != nil {
		return nil, err
	}
	o.paces.learn(name, response.Header, time.Now())
	for key := range response.Header {
		if strings.HasPrefix(key, "X-Ratelimit-") { // discordgo fails if it cannot parse them
			delete(response.Header, key)
		}
	}
	switch code := response.StatusCode; {
	case code == http.StatusOK, code == http.StatusCreated, code == http.StatusNoContent: // all that discordgo knows
	case code == http.StatusTooManyRequests:
		return nil, o.tooMany(name, response, body)
	case code >= 500, code < 300, code == http.StatusRequestTimeout:
		return nil, &adapters.SendError{Failure: adapters.Unclear, Err: fmt.Errorf("discord answered %s", response.Status)}
	case code >= 300 && code < 400:
		return nil, &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("discord answered %s: api_url is not the address of the API", response.Status)}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// tooMany returns the error of a 429, and lets the route rest.
// https://docs.discord.com/developers/topics/rate-limits#exceeding-a-rate-limit
func (o once) tooMany(name string, response *http.Response, body []byte) error {
	var answer struct {
		RetryAfter float64 `json:"retry_after"`
		Global     bool    `json:"global"`
	}
	_ = json.Unmarshal(body, &answer) // a proxy answers without JSON
	after := seconds(answer.RetryAfter)
	if after <= 0 {
		after = headerSeconds(response.Header, "Retry-After")
	}
	after = min(max(after, minRetry), maxRetry)
	scope := scopeOf(name)
	if answer.Global || response.Header.Get("X-RateLimit-Global") != "" {
		name, scope = "", adapters.ScopeWorkspace
	}
	o.paces.rest(name, time.Now().Add(after))
	return limited(after, scope, "discord answered "+response.Status)
}

func limited(after time.Duration, scope adapters.Scope, reason string) *adapters.SendError {
	return &adapters.SendError{Failure: adapters.RateLimited, RetryAfter: after, Scope: scope, Err: errors.New(reason)}
}
