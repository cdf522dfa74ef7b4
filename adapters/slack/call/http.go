package call

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"time"

	"parley/adapters"
	"parley/adapters/httpcall"
)

const (
	// maxAnswer bounds an answer of the Web API, in bytes. The longest answer is a page of
	// history with 200 long messages.
	maxAnswer = 32 << 20
	// minRetry is the wait after a 429 without a time. maxRetry bounds the wait: Slack's
	// windows are a minute, so a longer wait is a mistake of a proxy.
	minRetry = time.Second
	maxRetry = 10 * time.Minute
)

// caller makes the HTTP requests of every Web API call, including slack-go's calls. It
// writes no request whose context has ended, and it retries nothing. Its errors are
// *adapters.SendError, which states the possible effect of the failed call. Every
// answer that it returns has status 200 and was read completely. It refuses the calls of a
// method that rests after a rate limit.
type caller struct {
	client *http.Client
	rests  *rests
	meter  httpcall.Meter
}

// Do implements slack-go's interface of an HTTP client.
func (c *caller) Do(request *http.Request) (*http.Response, error) {
	return c.do(path.Base(request.URL.Path), request)
}

// do makes the request of a method.
func (c *caller) do(method string, request *http.Request) (*http.Response, error) {
	if left := c.rests.left(method, time.Now()); left > 0 {
		return nil, &adapters.SendError{
			Failure: adapters.RateLimited, RetryAfter: left, Scope: adapters.ScopeMethod, Err: errors.New("the method rests after a rate limit"),
		}
	}
	response, body, err := httpcall.Do(c.client, request, maxAnswer)
	c.count(method, response, body)
	switch {
	case err != nil:
		return nil, err
	case response.StatusCode != http.StatusOK:
		return nil, c.refusedStatus(method, response)
	case bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")): // a page for browsers
		return nil, &adapters.SendError{Failure: adapters.Unclear, Err: errors.New(otherServer)}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// methods are the methods that the meter knows.
var methods = []string{
	"apps.connections.open", "assistant.threads.setStatus", "assistant.threads.setSuggestedPrompts", "auth.test", "chat.appendStream", "chat.delete",
	"chat.postEphemeral", "chat.postMessage", "chat.startStream", "chat.stopStream", "chat.update", "conversations.history", "conversations.info",
	"conversations.open", "conversations.replies", "files.completeUploadExternal", "files.getUploadURLExternal", "files.info", "reactions.add", "reactions.remove", "upload",
	"users.conversations", "users.info",
}

// maxRefusal is more bytes than a refusal has.
const maxRefusal = 4 << 10

// count counts a request.
func (c *caller) count(method string, response *http.Response, body []byte) {
	if !slices.Contains(methods, method) {
		method = httpcall.Other
	}
	var answer struct{ OK *bool }
	if len(body) <= maxRefusal && bytes.Contains(body, []byte("false")) && json.Unmarshal(body, &answer) == nil && answer.OK != nil && !*answer.OK && response.StatusCode == http.StatusOK {
		c.meter.Refused(method)
		return
	}
	c.meter.Count(method, response)
}

// otherServer says that an answer does not come from Slack's Web API.
const otherServer = "this is no answer of Slack's Web API; set slack.api_url to its address, or let the proxy on the way pass the call"

// scopeOf returns the scope of a method's rate limit. Slack limits chat.postMessage by
// channel, and every other method by itself in the workspace.
// https://docs.slack.dev/apis/web-api/rate-limits
func scopeOf(method string) adapters.Scope {
	if method == "chat.postMessage" {
		return adapters.ScopeChannel
	}
	return adapters.ScopeMethod
}

// limited returns the error of a call that a rate limit has refused. The method rests if the
// limit is not that of a channel.
func (c *caller) limited(method string, after time.Duration, err error) *adapters.SendError {
	failure := &adapters.SendError{Failure: adapters.RateLimited, RetryAfter: after, Scope: scopeOf(method), Err: err}
	c.meter.Throttled(after)
	if failure.Scope == adapters.ScopeMethod {
		c.rests.rest(method, time.Now().Add(after))
	}
	return failure
}

// refusedStatus returns the error of an answer with a status other than 200. Slack
// itself answers 200, 429 or 5xx. Other statuses come from a proxy or another server.
func (c *caller) refusedStatus(method string, response *http.Response) error {
	failure := &adapters.SendError{Err: fmt.Errorf("slack answered %s", response.Status)}
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests:
		return c.limited(method, RetryAfter(response.Header), failure.Err)
	case code >= 500, code < 300, code == http.StatusRequestTimeout:
		failure.Failure = adapters.Unclear
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge:
		failure.Failure = adapters.Permanent
	default: // a wrong address, or a proxy that asks for credentials: the call succeeds once that is fixed
		failure.Failure, failure.Err = adapters.NotSent, fmt.Errorf("%w: %s", failure.Err, otherServer)
	}
	return failure
}

// RetryAfter returns the wait in the Retry-After header, which is in seconds.
// https://docs.slack.dev/apis/web-api/rate-limits
func RetryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 1 {
		return minRetry
	}
	return time.Duration(min(seconds, int(maxRetry/time.Second))) * time.Second
}
