package slack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"path"
	"strconv"
	"sync/atomic"
	"time"

	"parley/adapters"
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

// newTransport returns a transport that uses only HTTP/1. With HTTP/1 a connection's
// trace concerns exactly one request, so the caller knows for certain that nothing was
// written.
func newTransport() *http.Transport {
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dial,
		MaxIdleConnsPerHost: idlePerHost,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
		Protocols:           new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	return transport
}

// newClient returns a client that follows no redirects, because a redirected request
// would carry the token in its body to the new address.
func newClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// caller makes the HTTP requests of every Web API call, including slack-go's calls. It
// writes no request whose context has ended, and it retries nothing. Its errors are
// *adapters.SendError, which states the possible effect of the failed call. Every
// answer that it returns has status 200 and was read completely. It refuses the calls of a
// method that rests after a rate limit.
type caller struct {
	client *http.Client
	rests  *adapters.Rests
}

// Do implements slack-go's interface of an HTTP client.
func (c caller) Do(request *http.Request) (*http.Response, error) {
	method := path.Base(request.URL.Path)
	if left := c.rests.Left(method, time.Now()); left > 0 {
		return nil, &adapters.SendError{
			Failure: adapters.RateLimited, RetryAfter: left, Scope: adapters.ScopeMethod, Err: errors.New("the method rests after a rate limit"),
		}
	}
	ctx := request.Context()
	var writing atomic.Bool
	deadline, bounded := ctx.Deadline()
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if ctx.Err() != nil || bounded && !time.Now().Before(deadline) {
			_ = got.Conn.Close() // connecting took too long: nothing may be written now
			return
		}
		writeBy(got.Conn, deadline)
		writing.Store(true)
	}}
	response, err := c.client.Do(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil {
		failure := adapters.NotSent
		if writing.Load() {
			failure = adapters.Unclear
		}
		return nil, &adapters.SendError{Failure: failure, Err: err}
	}
	defer response.Body.Close()
	// Read every answer completely, so that the connection can be reused.
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, c.refusedStatus(method, response)
	case err != nil:
		return nil, &adapters.SendError{Failure: adapters.Unclear, Err: fmt.Errorf("read the answer: %w", err)}
	case len(body) > maxAnswer:
		return nil, &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("the answer is too long")}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// scopeOf returns the scope of a method's rate limit. Slack limits chat.postMessage by
// channel, and every other method by itself in the workspace.
// https://docs.slack.dev/apis/web-api/rate-limits
func scopeOf(method string) adapters.Scope {
	if method == "chat.postMessage" {
		return adapters.ScopeChannel
	}
	return adapters.ScopeMethod
}

// refusedStatus returns the error of an answer with a status other than 200. Slack
// itself answers 200, 429 or 5xx. Other statuses come from a proxy or another server.
// After a 429, the method rests if the limit is not that of a channel.
func (c caller) refusedStatus(method string, response *http.Response) error {
	failure := &adapters.SendError{Err: fmt.Errorf("slack answered %s", response.Status)}
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests:
		failure.Failure, failure.RetryAfter, failure.Scope = adapters.RateLimited, retryAfter(response.Header), scopeOf(method)
		if failure.Scope == adapters.ScopeMethod {
			c.rests.Rest(method, time.Now().Add(failure.RetryAfter))
		}
	case code >= 500, code < 300, code == http.StatusRequestTimeout:
		failure.Failure = adapters.Unclear
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge:
		failure.Failure = adapters.Permanent
	default: // a wrong address, or a proxy that asks for credentials: the call succeeds once that is fixed
		failure.Failure = adapters.NotSent
	}
	return failure
}

// retryAfter returns the wait in the Retry-After header, which is in seconds.
// https://docs.slack.dev/apis/web-api/rate-limits
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 1 {
		return minRetry
	}
	return time.Duration(min(seconds, int(maxRetry/time.Second))) * time.Second
}
