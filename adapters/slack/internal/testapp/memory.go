package testapp

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

// Memory is a fake Slack whose connections are in memory, so that it can serve
// inside a bubble of testing/synctest.
type Memory struct {
	*slacktest.Server
	Listener *Listener
}

// StartMemory starts a fake Slack that serves until the test ends.
func StartMemory(t *testing.T, options slacktest.Options) *Memory {
	t.Helper()
	listener := NewListener()
	options.Listener = listener
	server, err := slacktest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return &Memory{server, listener}
}

// Listener is a listener for connections in memory.
type Listener struct {
	accepted  chan net.Conn
	once      sync.Once
	closed    chan struct{}
	ReadDelay atomic.Int64 // in nanoseconds; for every connection that is dialed from now on
}

// slowConn is a connection whose reads are delayed.
type slowConn struct {
	net.Conn
	delay time.Duration
}

func (c slowConn) Read(p []byte) (int, error) {
	<-time.After(c.delay) // on the clock of the bubble
	return c.Conn.Read(p)
}

// NewListener returns a listener without connections.
func NewListener() *Listener {
	return &Listener{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a loopback address, for which no proxy is used.
func (l *Listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// Dial connects to the listener and ignores the address.
func (l *Listener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.accepted <- there:
		if delay := time.Duration(l.ReadDelay.Load()); delay > 0 {
			return slowConn{here, delay}, nil
		}
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
