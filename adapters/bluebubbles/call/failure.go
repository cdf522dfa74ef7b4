package call

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

const (
	// maxWords bounds the server's words in an error, in bytes.
	maxWords = 300
	// minRetry is the wait after a 429 without a time. BlueBubbles has no rate limit, but a
	// proxy before it may have one. maxRetry bounds the wait, which stops the whole workspace.
	minRetry, maxRetry = time.Second, 10 * time.Minute
)

// otherServer says that an answer is not in the form of a BlueBubbles server's.
const otherServer = "this is no answer of a BlueBubbles server; set bluebubbles.url to the server's own address"

// noHelper is a part of the server's words, in lower case, if the helper of its private API is gone. The
// server checks that before a call takes effect.
const noHelper = "helper is not connected"

// ErrNoHelper means that the private API cannot send now.
var ErrNoHelper = errors.New("the private API does not work now")

// refusal returns the error of an answer with a status other than 200. The server answers 5xx
// although a message may be sent. A 4xx that has not the form of the server's own answers comes
// from a proxy: the call succeeds later, unless its file is too large.
func (c *Client) refusal(name string, response *http.Response, answer envelope) error {
	words := cmp.Or(answer.Error.Message, answer.Message)
	if to, err := response.Location(); err == nil {
		words = "it redirects to " + to.Scheme + "://" + to.Host + "; set bluebubbles.url to the server's own address"
	}
	if words == "" && answer.Status == 0 && response.StatusCode < http.StatusInternalServerError {
		words = otherServer
	}
	err := fmt.Errorf("%s: bluebubbles answered %s", name, strings.TrimSuffix(response.Status+": "+c.hide(words), ": "))
	if strings.Contains(strings.ToLower(words), noHelper) {
		return &adapters.SendError{Failure: adapters.NotSent, Err: fmt.Errorf("%w (%w)", err, ErrNoHelper)}
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
func (c *Client) hideIn(err error) error {
	if text := err.Error(); c.hide(text) != text {
		return errors.New(c.hide(text))
	}
	return err
}

// minHidden is the number of bytes from which a secret is removed from words: without a shorter
// one, no text could be read.
const minHidden = 4

// hide removes the password and the webhook's secret from words of the server, in every form
// that a URL gives them, and shortens the words.
func (c *Client) hide(words string) string {
	for _, value := range []string{c.password.Reveal(), c.webhookSecret.Reveal()} {
		for _, form := range []string{value, url.QueryEscape(value), url.PathEscape(value)} {
			if len(form) >= minHidden {
				words = strings.ReplaceAll(words, form, "[secret]")
			}
		}
	}
	return event.Cut(words, maxWords)
}

// IsMissing reports whether the server refused a call for good, such as for an unknown guid.
func IsMissing(err error) bool {
	failure, ok := errors.AsType[*adapters.SendError](err)
	return ok && failure.Failure == adapters.Permanent
}
