package discordtest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"parley/adapters/adaptertest/faults"
)

// Fault is a fault of one call. The zero value is none. A fault with a response of its own
// prevents the call's effect, unless Effect is set.
type Fault struct {
	// Late passes between the reading of the request and its effect, although the client may
	// have disconnected.
	Late time.Duration
	// Hold delays the effect until the channel is closed; without effect if the server stops.
	Hold <-chan struct{}
	// Effect means that the call takes effect in spite of its response.
	Effect bool
	// Status replaces the status. Code is the code of Discord's error object; without it, the
	// body is an HTML page, as from a proxy.
	Status, Code int
	// RetryAfter is the wait of a 429. Scope is its scope: user, shared or global.
	RetryAfter time.Duration
	Scope      string
	// Cut ends the connection without a response.
	Cut bool
}

// RateLimited returns Discord's 429 for one route.
func RateLimited(after time.Duration) Fault {
	return Fault{Status: http.StatusTooManyRequests, RetryAfter: after, Scope: "user"}
}

// answers reports whether the fault has a response of its own.
func (f Fault) answers() bool { return f.Status != 0 || f.Cut }

// Chance is a fault of a route with its probability, from 0 to 1.
type Chance = faults.Chance[Fault]

// Mix returns a Plan of random faults. The same seed gives the same faults in the same order
// of calls. A call has at most one of them.
func Mix(seed uint64, chances ...Chance) func(Call) Fault {
	draw := faults.Mix(seed, chances)
	return func(call Call) Fault { return draw(call.Route) }
}

// Script appends the faults of a route's next calls. A route is a pattern such as Post. Later
// calls follow the Plan.
func (s *Server) Script(route string, faults ...Fault) { s.script.Add(route, faults...) }

func (s *Server) fault(call Call) Fault { return s.script.Take(call.Route, call, s.options.Plan) }

// pass waits for the fault's delays. It returns false if the server stopped first.
func (s *Server) pass(f Fault) bool {
	timer := make(<-chan time.Time)
	if f.Late > 0 {
		timer = time.After(f.Late)
	}
	switch {
	case f.Hold != nil:
		select {
		case <-f.Hold:
		case <-s.stopped:
			return false
		}
	case f.Late > 0:
		select {
		case <-timer:
		case <-s.stopped:
			return false
		}
	}
	return true
}

// write writes the fault's own response.
func (f Fault) write(w http.ResponseWriter) {
	switch {
	case f.Cut:
		panic(http.ErrAbortHandler)
	case f.Status == http.StatusTooManyRequests:
		limited(w, f.RetryAfter, f.Scope)
	case f.Code != 0:
		refusal{f.Status, f.Code, "scripted"}.write(w)
	default:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = fmt.Fprintf(w, "<html><body>%s</body></html>", http.StatusText(f.Status))
	}
}

// limited writes a 429.
// https://docs.discord.com/developers/topics/rate-limits#exceeding-a-rate-limit
func limited(w http.ResponseWriter, after time.Duration, scope string) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Retry-After", strconv.Itoa(int((after+time.Second-1)/time.Second)))
	header.Set("X-RateLimit-Scope", scope)
	if scope == "global" {
		header.Set("X-RateLimit-Global", "true")
	}
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write(encode(map[string]any{"message": "You are being rate limited.", "retry_after": after.Seconds(), "global": scope == "global"}))
}

// refusal is an error object of Discord.
// https://docs.discord.com/developers/topics/opcodes-and-status-codes#json
type refusal struct {
	status, code int
	message      string
}

func (r refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_, _ = w.Write(encode(map[string]any{"code": r.code, "message": r.message}))
}

// The refusals of more than one route.
var (
	unauthorized   = refusal{http.StatusUnauthorized, 0, "401: Unauthorized"}
	unknownChannel = refusal{http.StatusNotFound, 10003, "Unknown Channel"}
	unknownGuild   = refusal{http.StatusNotFound, 10004, "Unknown Guild"}
	unknownMessage = refusal{http.StatusNotFound, 10008, "Unknown Message"}
	unknownUser    = refusal{http.StatusNotFound, 10013, "Unknown User"}
	unknownMember  = refusal{http.StatusNotFound, 10007, "Unknown Member"}
	unknownHook    = refusal{http.StatusNotFound, 10015, "Unknown Webhook"}
	endedHook      = refusal{http.StatusUnauthorized, 50027, "Invalid Webhook Token"}
	missingAccess  = refusal{http.StatusForbidden, 50001, "Missing Access"}
	mayNotPost     = refusal{http.StatusForbidden, 50013, "Missing Permissions"}
	refusesDirect  = refusal{http.StatusForbidden, 50007, "Cannot send messages to this user"}
	emptyMessage   = refusal{http.StatusBadRequest, 50006, "Cannot send an empty message"}
	invalidForm    = refusal{http.StatusBadRequest, 50035, "Invalid Form Body"}
	notOurs        = refusal{http.StatusForbidden, 50005, "Cannot edit a message authored by another user"}
	noHistory      = refusal{http.StatusBadRequest, 160002, "Cannot reply without permission to read message history"}
)
