package slack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"
	"time"

	"parley/adapters"
)

const (
	// maxAnswer bounds an answer of the Web API, in bytes. A page of history with
	// 200 long messages is the longest that is asked for.
	maxAnswer = 32 << 20
	// minRetry is waited where a 429 does not say how long, and maxRetry at most:
	// Slack's windows are a minute, so a longer wait is a mistake on the way.
	minRetry = time.Second
	maxRetry = 10 * time.Minute
)

// newTransport speaks HTTP/1 alone: there, what a connection tells of is exactly
// one request, and "nothing was written" is certain.
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

// newClient follows no redirect: the token travels in the body, and would go along.
func newClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// caller does the HTTP of every Web API call, slack-go's too. It writes no
// request whose context has ended, tries nothing twice, and says of a failure
// what it left behind: its errors are *adapters.SendError. An answer that it
// returns has status 200 and was read to its end.
type caller struct{ client *http.Client }

// Do satisfies what slack-go asks of an HTTP client.
func (c caller) Do(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	var writing atomic.Bool
	deadline, bounded := ctx.Deadline()
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		if ctx.Err() != nil || bounded && !time.Now().Before(deadline) {
			_ = got.Conn.Close() // connecting took too long: nothing can be written now
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
	// Read to its end even where it does not matter: the connection is then kept.
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case response.StatusCode != http.StatusOK:
		return nil, refusedStatus(response)
	case err != nil:
		return nil, &adapters.SendError{Failure: adapters.Unclear, Err: fmt.Errorf("read the answer: %w", err)}
	case len(body) > maxAnswer:
		return nil, &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("the answer is too long")}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// refusedStatus says what an answer other than 200 left behind. Slack itself
// answers 200, 429 or 5xx; the rest comes from what stands between.
func refusedStatus(response *http.Response) error {
	failure := &adapters.SendError{Err: fmt.Errorf("slack answered %s", response.Status)}
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests:
		failure.Failure, failure.RetryAfter = adapters.RateLimited, retryAfter(response.Header)
	case code >= 500, code < 300, code == http.StatusRequestTimeout:
		failure.Failure = adapters.Unclear
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge:
		failure.Failure = adapters.Permanent
	default: // a wrong address, a proxy that asks for credentials: mended, it goes through
		failure.Failure = adapters.NotSent
	}
	return failure
}

// retryAfter reads the header's seconds.
// https://docs.slack.dev/apis/web-api/rate-limits
func retryAfter(header http.Header) time.Duration {
	seconds, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || seconds < 1 {
		return minRetry
	}
	return time.Duration(min(seconds, int(maxRetry/time.Second))) * time.Second
}
