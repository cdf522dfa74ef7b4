package slack_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/adapters/slack/slacktest"
)

// memoryFake is a fake Slack whose connections are in memory, so that it can serve
// inside a bubble of testing/synctest.
type memoryFake struct {
	*slacktest.Server
	listener *memoryListener
}

// startMemoryFake starts a fake Slack that serves until the test ends.
func startMemoryFake(t *testing.T, options slacktest.Options) *memoryFake {
	t.Helper()
	listener := newMemoryListener()
	options.Listener = listener
	server, err := slacktest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return &memoryFake{server, listener}
}

// memoryListener is a listener for connections in memory.
type memoryListener struct {
	accepted  chan net.Conn
	once      sync.Once
	closed    chan struct{}
	readDelay atomic.Int64 // in nanoseconds; for every connection that is dialed from now on
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

func newMemoryListener() *memoryListener {
	return &memoryListener{accepted: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accepted:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns a loopback address, for which no proxy is used.
func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// dial connects to the listener and ignores the address.
func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.accepted <- there:
		if delay := time.Duration(l.readDelay.Load()); delay > 0 {
			return slowConn{here, delay}, nil
		}
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
