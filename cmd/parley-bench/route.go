package main

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// balancer is what stands between Slack and several nodes: it knows which of them
// did not answer lately. Many routes share it.
type balancer struct{ backends []*backend }

// backend is one node as the balancer sees it.
type backend struct {
	address string
	back    atomic.Int64 // when it is to be asked again, in Unix nanoseconds
}

// outFor is how long a node is left alone that has accepted a connection and then
// not answered, as a node that hangs does.
const outFor = 10 * time.Second

func newBalancer(addresses ...string) *balancer {
	b := &balancer{}
	for _, address := range addresses {
		b.backends = append(b.backends, &backend{address: address})
	}
	return b
}

// route is one connection of Slack's through the balancer, with a line to each
// node. One goroutine uses it.
type route struct {
	backends []*backend
	lines    []*line
	next     int // whose turn it is
}

// route begins with the node of that number, counted around.
func (b *balancer) route(first int) *route {
	r := &route{backends: b.backends, next: first % len(b.backends)}
	for _, backend := range b.backends {
		r.lines = append(r.lines, &line{address: backend.address})
	}
	return r
}

// post gives an event to the next node. One that refuses the connection or says
// 503 has taken nothing, so the event goes to the node after it; whatever else
// goes wrong is left to Slack, which sends the event again.
func (r *route) post(body []byte, attempt int, now time.Time) (status int, err error) {
	for range r.lines {
		n := r.pick(now)
		status, err = r.lines[n].post(signed(r.lines[n].address, body, attempt, now))
		if hangs(err) {
			r.backends[n].back.Store(time.Now().Add(outFor).UnixNano())
		}
		if status != http.StatusServiceUnavailable && !errors.Is(err, syscall.ECONNREFUSED) {
			break
		}
	}
	return status, err
}

// pick takes the next node that is not out, or the next one where all are.
func (r *route) pick(now time.Time) int {
	for range r.backends {
		n := r.turn()
		if r.backends[n].back.Load() <= now.UnixNano() {
			return n
		}
	}
	return r.turn()
}

func (r *route) turn() int {
	n := r.next
	r.next = (n + 1) % len(r.lines)
	return n
}

func hangs(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

func (r *route) close() {
	for _, line := range r.lines {
		line.close()
	}
}
