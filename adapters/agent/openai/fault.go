package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Error is how a run fails by the model or its server. Its words are for the
// operator, and never hold the API key.
type Error struct {
	// Permanent says that asking again is of no use without a change of the
	// configuration or of what is asked.
	Permanent  bool
	Status     int           // of the HTTP response; 0 where it was not the fault
	RetryAfter time.Duration // how long the server wants to be left alone; 0 where it said nothing

	words string
	cause error
	again bool // worth repeating within the run
}

// Error gives the words.
func (e *Error) Error() string { return "ask the model: " + e.words }

// Unwrap gives the connection's error, where that was the fault.
func (e *Error) Unwrap() error { return e.cause }

// Temporary is the opposite of Permanent, for callers who don't know this package.
func (e *Error) Temporary() bool { return !e.Permanent }

// unreachable is a request that got no response. The URL is left out: a query
// may hold a key.
func (a *Agent) unreachable(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	return &Error{words: a.clean(err.Error()), cause: err, again: true}
}

// check refuses a response that is no stream.
func (a *Agent) check(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return a.refused(response)
	}
	kind := response.Header.Get("Content-Type")
	if base, _, _ := mime.ParseMediaType(kind); base == "text/event-stream" {
		return nil
	}
	return &Error{Permanent: true, Status: response.StatusCode, words: a.clean(fmt.Sprintf(
		"the answer is %q, not an event stream (check that base_url goes as far as /v1): %s", kind, opening(response.Body)))}
}

// refused is the error of a response with a status other than 200.
func (a *Agent) refused(response *http.Response) error {
	status := response.StatusCode
	words, _ := complaint(opening(response.Body))
	return &Error{
		Permanent:  permanent(status),
		Status:     status,
		RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now()),
		words:      a.clean(fmt.Sprintf("%d %s%s: %s", status, http.StatusText(status), hint(status), words)),
		again:      !permanent(status),
	}
}

// opening is as much of an error's body as is worth reading.
func opening(body io.Reader) []byte {
	begin, _ := io.ReadAll(io.LimitReader(body, 8<<10)) // what came is shown, cut short or not
	return begin
}

// permanent says whether a status tells that the same request will never do.
func permanent(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < 500
}

func hint(status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return " (check api_key)"
	case status == http.StatusNotFound:
		return " (check base_url and model)"
	case status >= 300 && status < 400:
		return " (redirects are not followed: set base_url to the final address)"
	}
	return ""
}

// complaint reads the shapes in which servers word an error, and the status that
// some of them put in it; a body in no known shape is shown as it is.
func complaint(body []byte) (words string, status int) {
	var outer struct {
		Error           json.RawMessage
		Detail, Message string
	}
	if json.Unmarshal(body, &outer) != nil {
		return string(body), 0
	}
	var inner struct {
		Message string
		Code    any
	}
	var text string
	switch {
	case json.Unmarshal(outer.Error, &inner) == nil && inner.Message != "":
		code, _ := inner.Code.(float64)
		return inner.Message, int(code)
	case json.Unmarshal(outer.Error, &text) == nil && text != "":
		return text, 0
	case outer.Detail+outer.Message != "":
		return outer.Detail + outer.Message, 0
	}
	return string(body), 0
}

// retryAfter reads seconds or a date (RFC 9110, 10.2.3); 0 is neither.
func retryAfter(value string, now time.Time) time.Duration {
	const year = 365 * 24 * 60 * 60
	if seconds, err := strconv.ParseUint(value, 10, 63); err == nil {
		return time.Duration(min(seconds, year)) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

// clean makes a server's words fit for a log: one line, not long, and without
// the key, which some servers repeat.
func (a *Agent) clean(words string) string {
	if key := strings.TrimSpace(a.config.APIKey.Reveal()); key != "" {
		words = strings.ReplaceAll(words, key, "[secret]")
	}
	return plain(words, 400)
}
