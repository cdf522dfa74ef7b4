package httpcall

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
)

// Meter passes the requests of a client to the meter of its adapter. The zero value counts nothing.
type Meter struct{ To adapters.Meter }

// Count counts a request by the status of its answer; nil if there was none.
func (m *Meter) Count(method string, answer *http.Response) {
	code := adapters.CodeNone
	if answer != nil {
		code = strconv.Itoa(answer.StatusCode)
	}
	m.count(method, code)
}

// Refused counts a request whose answer has the status 200 and is a refusal.
func (m *Meter) Refused(method string) { m.count(method, adapters.CodeRefused) }

func (m *Meter) count(method, code string) {
	if m.To != nil {
		m.To.Requested(method, code)
	}
}

// Throttled counts the wait that an answer has asked for.
func (m *Meter) Throttled(wait time.Duration) {
	if m.To != nil {
		m.To.Throttled(wait)
	}
}

// Other is the method of a request that is in no list.
const Other = "other"

// Route names a request for a Meter: its HTTP method, and the last part of its path that is one of words.
// The other parts are ids and secrets.
func Route(request *http.Request, words []string) string {
	parts := strings.Split(request.URL.Path, "/")
	for _, part := range slices.Backward(parts) {
		if slices.Contains(words, part) {
			return request.Method + " " + part
		}
	}
	return Other
}
