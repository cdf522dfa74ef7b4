package guard_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"parley/adapters/guard"
)

// within is longer than any test.
const within = time.Minute

// door is a guarded server on loopback.
type door struct {
	*guard.Guard
	*httptest.Server
	t       *testing.T
	states  chan http.ConnState // every change of a connection
	reasons chan string         // of the refused requests
}

// open starts a server with a handler.
func open(t *testing.T, handle func(g *guard.Guard, w http.ResponseWriter, r *http.Request)) *door {
	t.Helper()
	d := &door{t: t, states: make(chan http.ConnState, 1000), reasons: make(chan string, 1000)}
	d.Guard = guard.New(func(reason string) { d.reasons <- reason })
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(d.Guard, w, r) }))
	d.Protect(d.Config)
	protected := d.Config.ConnState
	d.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		protected(conn, state)
		d.states <- state
	}
	d.Start()
	t.Cleanup(d.Close)
	return d
}

// caller is a client with one connection.
type caller struct {
	net.Conn
	t       *testing.T
	answers *bufio.Reader
}

// dial connects, and waits until the server knows the connection.
func (d *door) dial() *caller {
	d.t.Helper()
	conn, err := net.Dial("tcp", d.Listener.Addr().String())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = conn.Close() })
	d.await(http.StateNew)
	return &caller{conn, d.t, bufio.NewReader(conn)}
}

// await waits until a connection has a state.
func (d *door) await(want http.ConnState) {
	for state := range d.states {
		if state == want {
			return
		}
	}
}

func (c *caller) send(format string, args ...any) *caller {
	c.t.Helper()
	if _, err := fmt.Fprintf(c, format, args...); err != nil {
		c.t.Fatal(err)
	}
	return c
}

// post begins a request with a body of n bytes, and sends the beginning of the body.
func (c *caller) post(n int, body string) *caller {
	c.t.Helper()
	return c.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", n, body)
}

// answer returns the status of the answer; 0 if the server closes the connection without one.
func (c *caller) answer() int {
	c.t.Helper()
	response, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode
}

// ended waits until the server closes the connection.
func (c *caller) ended() bool {
	_, err := c.answers.ReadByte()
	return err != nil
}

func (d *door) check(what string, got, want int) {
	d.t.Helper()
	if got != want {
		d.t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// begun is a body that reports its first read.
type begun struct {
	io.ReadCloser
	once  sync.Once
	reads chan struct{}
}

func (b *begun) Read(p []byte) (int, error) {
	b.once.Do(func() { b.reads <- struct{}{} })
	return b.ReadCloser.Read(p)
}
