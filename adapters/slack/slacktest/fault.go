package slacktest

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"parley/adapters/adaptertest/faults"
	"parley/adapters/slack/slacktest/internal/life"
	"parley/adapters/slack/slacktest/internal/wire"
)

// Fault is a fault of one call. The zero value is none. A fault with a response other than
// success prevents the call's effect, unless Effect is set.
type Fault struct {
	// Latency passes before everything else.
	Latency time.Duration
	// Late passes between the reading of the request and its effect. The effect happens
	// although the client may have disconnected. The response waits for it, unless the fault
	// has a response of its own.
	Late time.Duration
	// Hold delays the effect as Late does, until the channel is closed.
	Hold <-chan struct{}
	// Gone is closed if the client disconnects while the effect waits. It may be nil.
	Gone chan<- struct{}
	// Effect means that the call takes effect in spite of its response.
	Effect bool
	// Status replaces the status 200. The body is an HTML page, as from a gateway, or Slack's
	// own body for 429.
	Status int
	// RetryAfter is the Retry-After header of that response; none if empty.
	RetryAfter string
	// Error responds with {"ok":false,"error":…}.
	Error string
	// Body is a response with status 200.
	Body string
	// Cut ends the connection without a response, or in the middle of Body.
	Cut bool
}

// RateLimited returns Slack's 429. Slack sends whole seconds; a fraction of a second becomes
// 0.
func RateLimited(after time.Duration) Fault {
	return Fault{Status: http.StatusTooManyRequests, RetryAfter: strconv.Itoa(int(after / time.Second))}
}

// answers reports whether the fault has a response of its own.
func (f Fault) answers() bool { return f.Status != 0 || f.Error != "" || f.Body != "" || f.Cut }

// delayed reports whether the effect is delayed.
func (f Fault) delayed() bool { return f.Late > 0 || f.Hold != nil }

// Chance is a fault with its probability.
type Chance struct {
	Method string  // chat.postMessage if empty
	P      float64 // from 0 to 1
	Fault  Fault
}

// Mix returns a Plan of random faults. The same seed gives the same faults in the same order
// of calls. A call has at most one of them.
func Mix(seed uint64, chances ...Chance) func(Call) Fault {
	list := make([]faults.Chance[Fault], len(chances))
	for i, c := range chances {
		list[i] = faults.Chance[Fault]{Route: cmp.Or(c.Method, "chat.postMessage"), P: c.P, Fault: c.Fault}
	}
	draw := faults.Mix(seed, list)
	return func(call Call) Fault { return draw(call.Method) }
}

// Script appends the faults of the method's next calls. Later calls follow the Plan.
func (s *Server) Script(method string, faults ...Fault) { s.script.Add(method, faults...) }

func (s *Server) fault(call Call) Fault { return s.script.Take(call.Method, call, s.options.Plan) }

// answer runs a call unless the fault prevents its effect, and writes the response.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, f Fault, run func() []byte) {
	if f.Latency > 0 && !s.life.Pass(time.After(f.Latency), nil) {
		panic(http.ErrAbortHandler)
	}
	var body []byte
	switch {
	case f.delayed():
		done := make(chan []byte, 1)
		s.life.Running.Go(func() {
			if s.life.Pass(life.After(f.Late), f.Hold) {
				done <- run()
			}
		})
		if !f.answers() {
			select {
			case body = <-done:
			case <-r.Context().Done():
				if f.Gone != nil {
					close(f.Gone)
				}
				panic(http.ErrAbortHandler)
			case <-s.life.Stopped:
				panic(http.ErrAbortHandler)
			}
		}
	case f.Effect || !f.answers():
		body = run()
	}
	f.write(w, body)
}

// write writes the fault's own response, or body if it has none.
func (f Fault) write(w http.ResponseWriter, body []byte) {
	header := w.Header()
	switch {
	case f.Status != 0:
		if f.RetryAfter != "" {
			header.Set("Retry-After", f.RetryAfter)
		}
		body = wire.Refusal("ratelimited")
		if f.Status != http.StatusTooManyRequests {
			header.Set("Content-Type", "text/html")
			body = []byte("<html><body>" + http.StatusText(f.Status) + "</body></html>")
		}
		w.WriteHeader(f.Status)
	case f.Error != "":
		body = wire.Refusal(f.Error)
	case f.Body != "":
		body = []byte(f.Body)
	}
	if f.Cut {
		if f.Body != "" {
			header.Set("Content-Length", strconv.Itoa(len(body)+1))
			_, _ = w.Write(body)
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}
