package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"parley/adapters/sse"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/event"
)

// Error is a failure of the agent or its server. Its text is for the operator and never
// contains a secret.
type Error struct {
	// Permanent reports that a repetition cannot succeed without a change of the
	// configuration or of the input.
	Permanent  bool
	Status     int           // of the HTTP response; 0 if the response was not the fault
	RetryAfter time.Duration // the server's requested pause; 0 if it named none

	text     string
	said     string // the server's words, if it has refused the request
	plain    string // text without the server's words; empty if it has none of them
	sentence string
	cause    error
}

// Error returns the text.
func (e *Error) Error() string { return "ask the agent: " + e.text }

// Unquoted returns the error without the words of the server, which may quote the input.
func (e *Error) Unquoted() error {
	if e.plain == "" {
		return e
	}
	plain := *e
	plain.text, plain.said, plain.plain = e.plain, "", ""
	return &plain
}

// Unwrap returns the connection's error, if that was the fault.
func (e *Error) Unwrap() error { return e.cause }

// Temporary is the opposite of Permanent, for callers that do not know this package.
func (e *Error) Temporary() bool { return !e.Permanent }

// Pause returns RetryAfter, for callers that do not know this package.
func (e *Error) Pause() time.Duration { return e.RetryAfter }

// Sentence returns the sentence for the people in the thread, if asking again does not help
// them; empty for the common one.
func (e *Error) Sentence() string {
	if e.Flood() {
		return turn.LongAnswer
	}
	return e.sentence
}

// Refused reports whether the server has certainly not begun to work: it could not be reached, or
// said that it is too busy.
func (e *Error) Refused() bool {
	dial, ok := errors.AsType[*net.OpError](e.cause)
	return ok && dial.Op == "dial" || e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable
}

// Failure returns the error of an agent that reported a failure in its answer. A status of
// 0 is unknown.
func (c *Client) Failure(text string, status int) *Error {
	plain := "the agent reported a failure"
	if status != 0 {
		plain += fmt.Sprintf(": %d %s", status, http.StatusText(status))
	}
	fault := &Error{plain: plain, Permanent: status >= 400 && permanent(status), Status: status, text: c.Clean(text), said: c.hide(text[:min(len(text), 8<<10)])}
	return fault.declined()
}

// Rejected returns the error of an input that the agent's protocol does not allow, with the
// sentence for the people in the thread; empty for the common one.
func (c *Client) Rejected(text, sentence string) *Error {
	return &Error{Permanent: true, text: c.Clean(text), sentence: sentence}
}

// Ended returns the error of an agent that has ended its work without an answer, in its own words, with the sentence for the
// people in the thread. Another attempt would ask it twice.
func (c *Client) Ended(text, sentence string) *Error {
	fault := c.Failure(text, 0)
	fault.Permanent, fault.sentence = true, c.hide(sentence)
	return fault
}

// Empty returns the error of an answer that has nothing.
func (c *Client) Empty(text string) *Error {
	return &Error{Permanent: true, text: c.Clean(text), cause: turn.ErrEmpty}
}

// Flood reports whether the agent said more than its bounds allow.
func (e *Error) Flood() bool { return isFlood(e.cause) }

func isFlood(err error) bool {
	return errors.Is(err, errFlood) || errors.Is(err, sse.ErrLong) || errors.Is(err, errManyEvents)
}

// Invalid returns the error of an answer that a repetition may mend.
func (c *Client) Invalid(text string, cause error) *Error {
	if cause != nil {
		text += ": " + cause.Error()
	}
	return &Error{text: c.Clean(text), cause: cause}
}

// LongEvent returns the error of an event that is too long, if the agent needs it.
func (c *Client) LongEvent() *Error {
	return &Error{text: "the answer contains an event that is longer than max_bytes allows", cause: sse.ErrLong}
}

// unreachable returns the error of a request without a response. It omits the URL, because a
// query may contain a key.
func (c *Client) unreachable(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	text := err.Error()
	if errors.Is(err, io.EOF) {
		text = "the server closed the connection without an answer"
	}
	return &Error{text: c.Clean(text), cause: err}
}

// interrupted returns the error of a body whose reading failed.
func (c *Client) interrupted(err error) error {
	switch {
	case errors.Is(err, sse.ErrLong):
		return c.LongEvent()
	case isFlood(err):
		return &Error{text: "the answer contains " + err.Error(), cause: err}
	}
	return c.Invalid("the answer was interrupted", err)
}

// explain replaces an error that the end of ctx caused by its cause. It keeps a server's own
// error, which says more.
func (c *Client) explain(ctx context.Context, err error) error {
	fault, ok := errors.AsType[*Error](err)
	switch cause := context.Cause(ctx); {
	case cause == nil || ok && fault.Status != 0:
		return err
	case cause == errFirstByte:
		return &Error{text: fmt.Sprintf("the answer did not begin within %v (first_byte)", c.config.FirstByte), sentence: turn.LateAnswer}
	default:
		return cause
	}
}

// refused returns the error of a response with a status other than 2xx.
func (c *Client) refused(response *http.Response) error {
	status := response.StatusCode
	text, _ := ErrorText(opening(response.Body))
	fault := &Error{
		Permanent:  permanent(status),
		Status:     status,
		RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now()),
		text:       c.Clean(strings.TrimSuffix(fmt.Sprintf("%d %s%s: %s", status, http.StatusText(status), c.hint(response), text), ": ")),
		said:       c.hide(text),
		plain:      fmt.Sprintf("%d %s%s", status, http.StatusText(status), c.hint(response)),
	}
	return fault.declined()
}

// Declined is the sentence for the people in the thread after an answer that the model's provider, or the
// model itself, refuses.
const Declined = "The model's provider declined to answer this."

// declined completes the error of a server whose filter has refused the input: a repetition is refused too. A bad call
// that the model has written is worth another attempt, with every status.
func (e *Error) declined() *Error {
	if miscalledWords.MatchString(e.said) {
		e.Permanent = false
	}
	if declinedWords.MatchString(e.said) {
		e.Permanent, e.sentence = true, Declined
	}
	return e
}

// opening returns the first 8 KiB of an error's body.
func opening(body io.Reader) []byte {
	begin, _ := io.ReadAll(io.LimitReader(body, 8<<10)) // a partial body is still useful
	return begin
}

// permanent reports whether the same request can never succeed after this status.
func permanent(status int) bool {
	return status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// hint returns what an operator may do about a refusal.
func (c *Client) hint(response *http.Response) string {
	status := response.StatusCode
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return " (check the agent's key)"
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return " (" + cmp.Or(c.AddressHint, "check the agent's address and model") + ")"
	case status >= 300 && status < 400:
		return " (redirects are not followed: configure the final address" + sameHost(response) + ")"
	}
	return ""
}

// sameHost returns the address of a redirect to the server itself, such as one that adds a slash, after a comma; empty
// for another server, which may be anybody's.
func sameHost(response *http.Response) string {
	to, err := response.Location()
	if err != nil || to.Host != response.Request.URL.Host || to.User != nil {
		return ""
	}
	to.RawQuery, to.Fragment = "", ""
	return ", " + to.String()
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

// minSecret is the number of bytes from which any word of a hidden value is a secret. The last
// word is one from minLast bytes: without a shorter one, no text could be read.
const minSecret, minLast = 8, 4

// Clean prepares a server's text for a log: one line of bounded length, without the secrets,
// which some servers repeat.
func (c *Client) Clean(text string) string { return Plain(c.hide(text), 400) }

// runToken is the form of the tokens of runs and of their reports.
var runToken = regexp.MustCompile(`parley-(?:run|push)-[0-9a-f-]{36,}`)

// hide removes the secrets from a text.
func (c *Client) hide(text string) string {
	text = runToken.ReplaceAllLiteralString(text, "[secret]")
	for _, hidden := range c.hidden {
		text = strings.ReplaceAll(text, hidden.Reveal(), "[secret]")
	}
	return text
}

// wordsOf returns the words of a configured value that are secrets, such as the token after Bearer.
func wordsOf(value secret.Value) (found []secret.Value) {
	words := strings.Fields(value.Reveal())
	for i, word := range words {
		if len(word) >= minSecret || i == len(words)-1 && len(word) >= minLast {
			found = append(found, secret.New(word))
		}
	}
	return found
}

// partsOf returns the parts of an address that may be secrets, since the path or the query may contain a
// key: the longer parts of the path, and every value of the query.
func partsOf(address string) (found []secret.Value) {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	hide := func(part string, least int, decode func(string) (string, error)) {
		plain, _ := decode(part) // empty after an error
		for _, form := range []string{part, plain} {
			if len(form) >= least {
				found = append(found, secret.New(form))
			}
		}
	}
	for part := range strings.SplitSeq(u.EscapedPath(), "/") {
		hide(part, minSecret, url.PathUnescape)
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		hide(cmp.Or(value, name), minLast, url.QueryUnescape)
	}
	return found
}

// Plain makes a foreign text part of one line. It replaces white space by one space, removes
// invisible characters, and cuts the text at limit characters. A sender chooses a file's
// name, and the name must not look like another message.
func Plain(text string, limit int) string {
	seen := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return event.Line(seen, limit)
}
