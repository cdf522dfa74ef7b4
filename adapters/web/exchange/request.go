package exchange

import (
	"cmp"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/adapters/guard"
	"parley/ingest/event"
)

const (
	// MaxBody bounds the body of a POST, in bytes.
	MaxBody = 256 << 10
	// bodyTimeout bounds the arrival of a body.
	bodyTimeout = 10 * time.Second
	// PageLimit is the largest page of a list, in rows; DefaultPage is the default.
	PageLimit, DefaultPage = 500, 100
)

// ReadBody reads a body, which must be UTF-8. tooLarge is the message of the error for one that is too long.
func ReadBody(g *guard.Guard, w http.ResponseWriter, r *http.Request, tooLarge string) ([]byte, error) {
	raw, refusal := g.Body(w, r, guard.Limit{Bytes: MaxBody, Time: bodyTimeout})
	switch {
	case refusal == nil:
		if err := event.CheckUTF8(raw); err != nil {
			return nil, Fail(http.StatusBadRequest, "invalid", "the body "+err.Error())
		}
		return raw, nil
	case refusal.Status == http.StatusRequestEntityTooLarge:
		return nil, Fail(refusal.Status, refusal.Reason, tooLarge)
	}
	return nil, Fail(refusal.Status, refusal.Reason, cmp.Or(unread[refusal.Status], "the body cannot be read"))
}

// unread are the messages of a body that could not be read, by status.
var unread = map[int]string{
	http.StatusRequestTimeout:     "the body must arrive within 10 seconds",
	http.StatusBadRequest:         "the body is malformed, or ends too early",
	http.StatusServiceUnavailable: "too many bodies arrive at this time: try again",
}

// ReadJSON reads a body that must be JSON.
func ReadJSON(g *guard.Guard, w http.ResponseWriter, r *http.Request, tooLarge string) ([]byte, error) {
	if !isJSON(r) {
		return nil, Fail(http.StatusUnsupportedMediaType, "content-type", "the body must have Content-Type: application/json")
	}
	return ReadBody(g, w, r, tooLarge)
}

// isJSON reports whether a request says that its body is JSON.
func isJSON(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && strings.EqualFold(mediaType, "application/json")
}

// LimitOf reads the length of a page from the query.
func LimitOf(r *http.Request, faults *event.FieldErrors) int {
	s := r.URL.Query().Get("limit")
	if s == "" {
		return DefaultPage
	}
	n, err := strconv.Atoi(s)
	faults.Check(err == nil && n >= 1 && n <= PageLimit, "limit", "must be 1 to "+strconv.Itoa(PageLimit))
	return n
}

// HTMLOf reads from the query whether the caller wants the text of agents as HTML, too.
func HTMLOf(r *http.Request, faults *event.FieldErrors) bool {
	given := r.URL.Query().Get("html")
	faults.Check(given == "" || given == "true" || given == "false", "html", "must be true or false")
	return given == "true"
}

// SeqOf reads a thread_seq from the query; 0 if it is absent.
func SeqOf(r *http.Request, name string, faults *event.FieldErrors) int64 {
	s := r.URL.Query().Get(name)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	faults.Check(err == nil && n >= 0, name, "must be a thread_seq: 0 or more")
	return n
}

// PositionOf reads the position at which a stream begins: that of Last-Event-ID, or else after.
func PositionOf(r *http.Request, words string, faults *event.FieldErrors) int64 {
	name, given := "after", r.URL.Query().Get("after")
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		name, given = "Last-Event-ID", id
	}
	if given == "" {
		return 0
	}
	n, err := strconv.ParseInt(given, 10, 64)
	faults.Check(err == nil && n >= 0, name, "must be "+words)
	return n
}
