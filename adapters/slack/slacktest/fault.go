package slacktest

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Fault is what goes wrong with one call. The zero value is a call that goes
// well. A fault that answers something else than success keeps the call from
// taking effect, unless Effect says otherwise.
type Fault struct {
	// Latency passes before anything else happens.
	Latency time.Duration
	// Late passes between the request's being read and its effect, which comes
	// although the client may have gone. The answer waits for it, except where
	// the fault has an answer of its own.
	Late time.Duration
	// Hold is Late with a signal instead of a time: the effect waits until the
	// channel is closed.
	Hold <-chan struct{}
	// Gone is closed if the client leaves while the effect waits; nil for nobody.
	Gone chan<- struct{}
	// Effect says that the call does what it should in spite of its answer.
	Effect bool
	// Status is answered instead of 200, with an HTML page as a gateway sends it;
	// 429 with what Slack itself says.
	Status int
	// RetryAfter is the header of that answer, whatever it says; none if empty.
	RetryAfter string
	// Error is answered as {"ok":false,"error":…}.
	Error string
	// Body is answered with status 200.
	Body string
	// Cut ends the connection without an answer, or in the middle of Body.
	Cut bool
}

// RateLimited is Slack's 429. Slack sends whole seconds; less is sent as 0.
func RateLimited(after time.Duration) Fault {
	return Fault{Status: http.StatusTooManyRequests, RetryAfter: strconv.Itoa(int(after / time.Second))}
}

// answers says that the client hears something else than what the method says.
func (f Fault) answers() bool { return f.Status != 0 || f.Error != "" || f.Body != "" || f.Cut }

// delayed says that the effect comes later than the request.
func (f Fault) delayed() bool { return f.Late > 0 || f.Hold != nil }

// Chance is a fault with its probability.
type Chance struct {
	Method string  // chat.postMessage if empty
	P      float64 // of 1
	Fault  Fault
}

// Mix makes a Plan of faults that happen by chance, the same ones in the same
// order of calls for the same seed. At most one of them befalls a call.
func Mix(seed uint64, chances ...Chance) func(Call) Fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, seed))
	return func(call Call) Fault {
		mu.Lock()
		draw := random.Float64()
		mu.Unlock()
		for _, c := range chances {
			if c.Method != call.Method && (c.Method != "" || call.Method != "chat.postMessage") {
				continue
			}
			if draw < c.P {
				return c.Fault
			}
			draw -= c.P
		}
		return Fault{}
	}
}

// script holds the faults of the next calls of each method.
type script struct {
	mu   sync.Mutex
	next map[string][]Fault
}

// Script sets the faults of the method's next calls, after those that were set
// before. Calls beyond them follow the Plan.
func (s *Server) Script(method string, faults ...Fault) {
	s.script.mu.Lock()
	defer s.script.mu.Unlock()
	if s.script.next == nil {
		s.script.next = map[string][]Fault{}
	}
	s.script.next[method] = append(s.script.next[method], faults...)
}

func (s *Server) fault(call Call) Fault {
	s.script.mu.Lock()
	if queue := s.script.next[call.Method]; len(queue) > 0 {
		s.script.next[call.Method] = queue[1:]
		s.script.mu.Unlock()
		return queue[0]
	}
	s.script.mu.Unlock()
	if s.options.Plan == nil {
		return Fault{}
	}
	return s.options.Plan(call)
}

// answer lets a call take effect by run, or not, and writes what the client hears.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, f Fault, run func() []byte) {
	if f.Latency > 0 && !s.pass(time.After(f.Latency), nil) {
		panic(http.ErrAbortHandler)
	}
	var body []byte
	switch {
	case f.delayed():
		done := make(chan []byte, 1)
		s.running.Go(func() {
			if s.pass(after(f.Late), f.Hold) {
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
			case <-s.stopped:
				panic(http.ErrAbortHandler)
			}
		}
	case f.Effect || !f.answers():
		body = run()
	}
	f.write(w, body)
}

// after is time.After, and nil for no time at all.
func after(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// pass waits for the timer and the signal, where there are any; false means
// that the server stopped first.
func (s *Server) pass(timer <-chan time.Time, signal <-chan struct{}) bool {
	if timer != nil {
		select {
		case <-timer:
		case <-s.stopped:
			return false
		}
	}
	if signal != nil {
		select {
		case <-signal:
		case <-s.stopped:
			return false
		}
	}
	return true
}

// write sends the fault's own answer, or body where it has none.
func (f Fault) write(w http.ResponseWriter, body []byte) {
	header := w.Header()
	switch {
	case f.Status != 0:
		if f.RetryAfter != "" {
			header.Set("Retry-After", f.RetryAfter)
		}
		body = refusal("ratelimited")
		if f.Status != http.StatusTooManyRequests {
			header.Set("Content-Type", "text/html")
			body = []byte("<html><body>" + http.StatusText(f.Status) + "</body></html>")
		}
		w.WriteHeader(f.Status)
	case f.Error != "":
		body = refusal(f.Error)
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
