package bluebubbles

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/httpcall"
)

const (
	// maxAnswer bounds an answer of the server, in bytes.
	maxAnswer = 64 << 20
	// maxWords bounds the server's words in an error, in bytes.
	maxWords = 300
	// minRetry is the wait after a 429 without a time. BlueBubbles has no rate limit, but a
	// proxy before it may have one. maxRetry bounds the wait, which stops the whole workspace.
	minRetry, maxRetry = time.Second, 10 * time.Minute
)

// newTransport returns the transport of all calls. Each call's URL contains the password, so
// only calls by HTTPS may pass a proxy.
func newTransport() *http.Transport {
	transport := httpcall.NewTransport()
	transport.Proxy = func(request *http.Request) (*url.URL, error) {
		if request.URL.Scheme != "https" {
			return nil, nil
		}
		return http.ProxyFromEnvironment(request)
	}
	return transport
}

// address returns the URL of a call. It contains the password.
func (a *Adapter) address(path string, query url.Values) string {
	if query == nil {
		query = url.Values{}
	}
	query.Set("password", a.config.Password.Reveal())
	return strings.TrimSuffix(a.config.URL, "/") + "/api/v1/" + path + "?" + query.Encode()
}

// escape returns a guid as a segment of a path.
func escape(guid string) string { return strings.ReplaceAll(url.QueryEscape(guid), "+", "%20") }

// call makes a call with a JSON body, and decodes the data of the answer; in and out may be
// nil. Its errors are *adapters.SendError.
func (a *Adapter) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	body, err := []byte(nil), error(nil)
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return adapters.Permanently(err.Error())
		}
	}
	return a.send(ctx, method, path, query, "application/json", body, out)
}

// send is call with an encoded body. No error contains the URL, because that has the password.
func (a *Adapter) send(ctx context.Context, method, path string, query url.Values, contentType string, body []byte, out any) error {
	name := method + " " + path[:strings.IndexByte(path+"/", '/')]
	request, err := http.NewRequestWithContext(ctx, method, a.address(path, query), bytes.NewReader(body))
	if err != nil {
		return adapters.Permanently(name + ": the address of the call is not valid")
	}
	request.Header.Set("Content-Type", contentType)
	response, raw, err := httpcall.Do(a.client, request, maxAnswer)
	if failure, ok := errors.AsType[*adapters.SendError](err); ok {
		return &adapters.SendError{Failure: failure.Failure, Err: fmt.Errorf("%s: %w", name, a.hideIn(httpcall.WithoutURL(failure.Err)))}
	}
	var answer envelope
	if err = json.Unmarshal(raw, &answer); err != nil {
		err = errors.New(otherServer)
	}
	if response.StatusCode != http.StatusOK {
		return a.refusal(name, response, answer)
	}
	if err == nil && out != nil && string(answer.Data) != "null" {
		err = json.Unmarshal(answer.Data, out)
	}
	if err != nil {
		return &adapters.SendError{Failure: adapters.Unclear, Err: fmt.Errorf("%s: decode the answer: %s", name, a.hide(err.Error()))}
	}
	return nil
}

// otherServer says that an answer is not in the form of a BlueBubbles server's.
const otherServer = "this is no answer of a BlueBubbles server; set bluebubbles.url to the server's own address"

// envelope is the form of every answer.
type envelope struct {
	Status  int             `json:"status"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
}

// noHelper is a part of the server's words, in lower case, if the helper of its private API is gone. The
// server checks that before a call takes effect.
const noHelper = "helper is not connected"

// errNoHelper means that the private API cannot send now.
var errNoHelper = errors.New("the private API does not work now")

// refusal returns the error of an answer with a status other than 200. The server answers 5xx
// although a message may be sent. A 4xx that has not the form of the server's own answers comes
// from a proxy: the call succeeds later, unless its file is too large.
func (a *Adapter) refusal(name string, response *http.Response, answer envelope) error {
	words := cmp.Or(answer.Error.Message, answer.Message)
	if to, err := response.Location(); err == nil {
		words = "it redirects to " + to.Scheme + "://" + to.Host + "; set bluebubbles.url to the server's own address"
	}
	if words == "" && answer.Status == 0 && response.StatusCode < http.StatusInternalServerError {
		words = otherServer
	}
	err := fmt.Errorf("%s: bluebubbles answered %s", name, strings.TrimSuffix(response.Status+": "+a.hide(words), ": "))
	if strings.Contains(strings.ToLower(words), noHelper) {
		return &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("%w (%w)", err, errNoHelper)}
	}
	failure := &adapters.SendError{Failure: adapters.NotSent, Err: err}
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized && answer.Status == code:
		failure.Err = &adapters.RefusedError{Err: err, Hint: "set bluebubbles.password to the password in the server's settings"}
	case code == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		failure.Failure, failure.Scope = adapters.RateLimited, adapters.ScopeWorkspace
		failure.RetryAfter = max(time.Duration(min(seconds, int(maxRetry/time.Second)))*time.Second, minRetry)
	case code >= 500, code < 300, code == http.StatusRequestTimeout:
		failure.Failure = adapters.Unclear
	case code >= 400 && answer.Status == code, code == http.StatusRequestEntityTooLarge:
		failure.Failure = adapters.Permanent
	}
	return failure
}

// hideIn removes secrets from an error.
func (a *Adapter) hideIn(err error) error {
	if text := err.Error(); a.hide(text) != text {
		return errors.New(a.hide(text))
	}
	return err
}

// minHidden is the number of bytes from which a secret is removed from words: without a shorter
// one, no text could be read.
const minHidden = 4

// hide removes the password and the webhook's secret from words of the server, in every form
// that a URL gives them, and shortens the words.
func (a *Adapter) hide(words string) string {
	for _, value := range []string{a.config.Password.Reveal(), a.config.WebhookSecret.Reveal()} {
		for _, form := range []string{value, url.QueryEscape(value), url.PathEscape(value)} {
			if len(form) >= minHidden {
				words = strings.ReplaceAll(words, form, "[secret]")
			}
		}
	}
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "…"
	}
	return words
}

// isMissing reports whether the server refused a call for good, such as for an unknown guid.
func isMissing(err error) bool {
	failure, ok := errors.AsType[*adapters.SendError](err)
	return ok && failure.Failure == adapters.Permanent
}
