package rig

import (
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Transport carries Slack's requests to the daemons in turn, like a load balancer.
type Transport struct {
	nodes []*target
	base  http.Transport
	next  atomic.Int64

	mu       sync.Mutex
	attempts []attempt // all of Slack's
}

// attempt is one attempt to deliver an event.
type attempt struct{ Sent, Ended time.Time }

// target is one daemon as the transport sees it.
type target struct {
	address string
	retryAt atomic.Int64 // Unix time in nanoseconds, until which the daemon gets no requests
}

const (
	// maxIdle is the number of connections to a daemon that stay open.
	maxIdle = 1000
	// SlackTimeout is the time that Slack waits for an answer.
	// https://docs.slack.dev/apis/events-api/#responding
	SlackTimeout = 3 * time.Second
	// hangPenalty is the time for which a daemon gets no requests after it accepted a
	// connection and then did not answer.
	hangPenalty = 10 * time.Second
)

// NewTransport returns a transport to the programs, which need not run yet.
func NewTransport(programs []*Child) *Transport {
	t := &Transport{base: http.Transport{MaxIdleConnsPerHost: maxIdle}}
	for _, c := range programs {
		t.nodes = append(t.nodes, &target{address: c.Address})
	}
	return t
}

// RoundTrip sends a request to the next daemon. After a refused connection or any other error
// Slack itself sends the event again, which then goes to the daemon after it.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	try := attempt{Sent: time.Now()}
	n := t.pick(try.Sent)
	request = request.Clone(request.Context())
	request.URL.Host = n.address
	response, err := t.base.RoundTrip(request)
	if os.IsTimeout(err) {
		n.retryAt.Store(time.Now().Add(hangPenalty).UnixNano())
	}
	try.Ended = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempts = append(t.attempts, try)
	return response, err
}

// Since returns the attempts that were sent after a time and have ended.
func (t *Transport) Since(begun time.Time) []attempt {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.attempts), func(a attempt) bool { return a.Sent.Before(begun) })
}

// pick returns the next daemon that does not hang. If all daemons hang, it returns the
// next one.
func (t *Transport) pick(now time.Time) (n *target) {
	for range len(t.nodes) + 1 {
		n = t.nodes[t.next.Add(1)%int64(len(t.nodes))]
		if n.retryAt.Load() <= now.UnixNano() {
			break
		}
	}
	return n
}
