// Package httpcall makes each HTTP request once, and reports the possible effect of a failed
// request.
package httpcall

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"parley/adapters"
)

// idlePerHost is the number of idle connections to a platform that are kept for later calls.
// It covers the deliveries that run at once when many threads are active.
const idlePerHost = 128

// NewTransport returns a transport that uses only HTTP/1. With HTTP/1 a connection's trace
// concerns exactly one request, so the caller knows for certain that nothing was written.
func NewTransport() *http.Transport {
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

// NewClient returns a client that follows no redirects, because a redirected request would
// carry the token to the new address.
func NewClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Do makes a request and reads the whole answer, so that the connection can be reused. It
// writes nothing after the end of the request's context, and it retries nothing. The transport
// of the client must be NewTransport's. An answer of more than maxAnswer bytes is an error.
// The errors are *adapters.SendError with the failure NotSent or Unclear.
func Do(client *http.Client, request *http.Request, maxAnswer int64) (*http.Response, []byte, error) {
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
	request = request.WithContext(httptrace.WithClientTrace(ctx, trace))
	if request.Body == nil || request.Body == http.NoBody {
		// The transport repeats a request without a body if a used connection breaks.
		request.Body, request.GetBody = io.NopCloser(strings.NewReader("")), nil
	}
	response, err := client.Do(request)
	if err != nil {
		failure := adapters.NotSent
		if writing.Load() {
			failure = adapters.Unclear
		}
		return nil, nil, &adapters.SendError{Failure: failure, Err: err}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case response.StatusCode/100 != 2: // the status tells the effect
	case err != nil:
		return nil, nil, &adapters.SendError{Failure: adapters.Unclear, Err: fmt.Errorf("read the answer: %w", err)}
	case int64(len(body)) > maxAnswer:
		return nil, nil, &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("the answer is too long")}
	}
	return response, body, nil
}
