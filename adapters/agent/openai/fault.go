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

// Error is a failure of the model or its server. Its text is for the operator and never
// contains the API key.
type Error struct {
	// Permanent reports that a repetition cannot succeed without a change of the
	// configuration or of the input.
	Permanent  bool
	Status     int           // of the HTTP response; 0 if the response was not the fault
	RetryAfter time.Duration // the server's requested pause; 0 if it named none

	text  string
	cause error
	again bool // Run may repeat the request
}

// Error returns the text.
func (e *Error) Error() string { return "ask the model: " + e.text }

// Unwrap returns the connection's error, if that was the fault.
func (e *Error) Unwrap() error { return e.cause }

// Temporary is the opposite of Permanent, for callers that do not know this package.
func (e *Error) Temporary() bool { return !e.Permanent }

// unreachable returns the error of a request without a response. It omits the URL, because a
// query may contain a key.
func (a *Agent) unreachable(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	return &Error{text: a.clean(err.Error()), cause: err, again: true}
}

// check returns an error if a response is not an event stream.
func (a *Agent) check(response *http.Response) error {
	if response.StatusCode != http.StatusOK {
		return a.refused(response)
	}
	kind := response.Header.Get("Content-Type")
	if base, _, _ := mime.ParseMediaType(kind); base == "text/event-stream" {
		return nil
	}
	return &Error{Permanent: true, Status: response.StatusCode, text: a.clean(fmt.Sprintf(
		"the answer is %q, not an event stream (check that base_url ends with /v1): %s", kind, opening(response.Body)))}
}

// refused returns the error of a response with a status other than 200.
func (a *Agent) refused(response *http.Response) error {
	status := response.StatusCode
	text, _ := errorText(opening(response.Body))
	return &Error{
		Permanent:  permanent(status),
		Status:     status,
		RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now()),
		text:       a.clean(fmt.Sprintf("%d %s%s: %s", status, http.StatusText(status), hint(status), text)),
		again:      !permanent(status),
	}
}

// opening returns the first 8 KiB of an error's body.
func opening(body io.Reader) []byte {
	begin, _ := io.ReadAll(io.LimitReader(body, 8<<10)) // a partial body is still useful
	return begin
}

// permanent reports whether the same request can never succeed after this status.
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

// errorText returns the message of an error, in any of the shapes that servers use, and the
// status that some of them include. It returns a body of unknown shape unchanged.
func errorText(body []byte) (message string, status int) {
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

// retryAfter parses seconds or a date (RFC 9110, 10.2.3). It returns 0 for any other value.
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

// clean prepares a server's text for a log: one line of bounded length, without the key,
// which some servers repeat.
func (a *Agent) clean(text string) string {
	if key := strings.TrimSpace(a.config.APIKey.Reveal()); key != "" {
		text = strings.ReplaceAll(text, key, "[secret]")
	}
	return plain(text, 400)
}
