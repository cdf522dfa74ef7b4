package bluebubblestest

import (
	"net/http"
	"strconv"
	"time"
)

// Fault is a fault of one call. The zero value is none. A fault with a Status or a Cut prevents
// the call's effect, unless Effect or Late is set.
type Fault struct {
	// Hold delays the effect and the answer until it is closed.
	Hold <-chan struct{}
	// Effect means that the call takes effect at once, in spite of the rest of the fault.
	Effect bool
	// Late is the time between the answer and the effect, which then happens although the
	// caller got an error.
	Late time.Duration
	// Status is the status of an error answer.
	Status int
	// RetryAfter is the Retry-After header of that answer; none if empty.
	RetryAfter string
	// Cut ends the connection without an answer.
	Cut bool
}

// Script appends the faults of the route's next calls. Later calls follow the Plan.
func (s *Server) Script(route string, faults ...Fault) { s.script.Add(route, faults...) }

func (s *Server) fault(call Call) Fault { return s.script.Take(call.Route, call, s.options.Plan) }

// answer runs a call unless the fault prevents its effect, and writes the answer.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, f Fault, run func() (any, error)) {
	var data any
	var err error
	fails := f.Status != 0 || f.Cut
	if f.Effect {
		data, err = run()
	}
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-s.live.Done():
			panic(http.ErrAbortHandler)
		}
	}
	switch {
	case f.Late > 0:
		s.enter(func() {
			if s.pass(f.Late) {
				_, _ = run()
			}
		})
	case !f.Effect && !fails:
		data, err = run()
	}
	switch {
	case f.Cut:
		panic(http.ErrAbortHandler)
	case f.Status != 0:
		if f.RetryAfter != "" {
			w.Header().Set("Retry-After", f.RetryAfter)
		}
		err = refuse(f.Status, "Server Error", http.StatusText(f.Status))
	}
	s.write(w, data, err)
}

// RateLimited returns a proxy's 429.
func RateLimited(after time.Duration) Fault {
	return Fault{Status: http.StatusTooManyRequests, RetryAfter: strconv.Itoa(int(after / time.Second))}
}
