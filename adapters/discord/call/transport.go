package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/httpcall"
)

// maxAnswer bounds an answer of the API, in bytes. The longest answers are the channels of
// a server and a page of 100 messages.
const maxAnswer = 32 << 20

const (
	// minRetry is the wait after a 429 without a time. maxRetry bounds the wait: Discord's
	// longest window is an hour.
	minRetry = time.Second
	maxRetry = time.Hour
)

// BoundedWait returns the wait after a rate limit whose rest Discord gives as after: at least a
// second, at most an hour.
func BoundedWait(after time.Duration) time.Duration { return min(max(after, minRetry), maxRetry) }

// once is discordgo's transport. It makes each request once, refuses requests of a route that
// rests, and turns answers that are no answers of the API into errors.
type once struct {
	client *http.Client
	paces  *Paces
	meter  *httpcall.Meter
}

// routes are the parts of paths that name calls for the meter.
var routes = []string{
	"active", "applications", "bot", "callback", "channels", "commands", "guilds", "members", "messages", "reactions", "roles", "threads", "typing", "users", "webhooks",
}

// RoundTrip implements http.RoundTripper.
func (o once) RoundTrip(request *http.Request) (*http.Response, error) {
	name := bucketOf(request)
	if left := o.paces.Left(name, time.Now()); left > 0 {
		return nil, Limited(left, scopeOf(name), "the route rests after a rate limit")
	}
	response, body, err := httpcall.Do(o.client, request, maxAnswer)
	o.meter.Count(httpcall.Route(request, routes), response)
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
	after = BoundedWait(after)
	scope := scopeOf(name)
	if answer.Global || response.Header.Get("X-RateLimit-Global") != "" {
		name, scope = "", adapters.ScopeWorkspace
	}
	o.paces.Rest(name, time.Now().Add(after))
	o.meter.Throttled(after)
	return Limited(after, scope, "discord answered "+response.Status)
}

// Limited returns the error of a call that a rate limit of the scope refuses for the time after.
func Limited(after time.Duration, scope adapters.Scope, reason string) *adapters.SendError {
	return &adapters.SendError{Failure: adapters.RateLimited, RetryAfter: after, Scope: scope, Err: errors.New(reason)}
}
