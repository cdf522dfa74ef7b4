// Package guard protects an HTTP server against callers that are not authenticated yet. It
// bounds their connections, the memory of their bodies, and their guesses of a secret.
package guard

import (
	"context"
	"math"
	"net"
	"net/http"
	"syscall"
)

// Guard is the guard of one HTTP server. It is safe for concurrent use.
type Guard struct {
	connections connections
	bodies      bodies
	failures    failures

	// Rejected receives the reason of each refused request. A handler that refuses a request by
	// itself calls it too.
	Rejected func(reason string)
	// Fault receives the error of each request that fails by our own fault, which its caller does
	// not learn; by default nobody does. Set it before the server serves.
	Fault func(err error)
}

// New returns the guard of a server.
func New(rejected func(reason string)) *Guard {
	g := &Guard{Rejected: rejected, Fault: func(error) {}}
	g.connections.max, g.connections.strangers, g.connections.one = halfOfDescriptors(), maxStrangers, maxOfAddress
	g.connections.of = map[key]int{}
	g.connections.places = map[net.Conn]place{}
	g.bodies.free = maxUnverified
	g.bodies.changed.L = &g.bodies.mu
	g.failures.of = map[key]*recent{}
	return g
}

// halfOfDescriptors returns half the number of files that the process may open.
func halfOfDescriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(limit.Cur / 2)
}

type connKey struct{}

// Protect adds the guard to a server that does not serve yet.
func (g *Guard) Protect(server *http.Server) {
	handler := server.Handler
	server.ConnState = g.connections.changed
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, conn)
	}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.connections.move(connOf(r), &g.connections.serving)
		handler.ServeHTTP(w, r)
	})
}

// connOf returns the connection of a request; nil if no guard protects its server.
func connOf(r *http.Request) net.Conn {
	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	return conn
}

// Refusal is the refusal of a request.
type Refusal struct {
	Status int    // of HTTP
	Reason string // for the operator, such as "slow-body"
}

// Refuse answers with the status and its standard text. Only the operator gets the reason.
func (g *Guard) Refuse(w http.ResponseWriter, refusal *Refusal) {
	g.Rejected(refusal.Reason)
	http.Error(w, http.StatusText(refusal.Status), refusal.Status)
}
