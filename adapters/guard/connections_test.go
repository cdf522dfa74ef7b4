package guard_test

import (
	"net/http"
	"testing"

	"parley/adapters/guard"
)

// TestNewConnectionGetsIn fills the server with connections whose callers let it wait in every
// way. Each new one closes the one that has been waiting longest, and none that is served.
func TestNewConnectionGetsIn(t *testing.T) {
	begins, release, reads := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	d := open(t, func(g *guard.Guard, w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/work":
			begins <- struct{}{}
			<-release
		case "/":
			r.Body = &begun{ReadCloser: r.Body, reads: reads}
			_, _ = g.Body(w, r, guard.Limit{Bytes: 10, Time: within})
		}
	})
	d.SetMaxConnections(5)

	worker := d.dial().send("GET /work HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begins // active is too early: its connection is still waiting until the handler begins
	silent := d.dial()
	kept := d.dial().send("GET /kept HTTP/1.1\r\nHost: x\r\n\r\n")
	d.check("a request", kept.answer(), http.StatusOK)
	d.await(http.StateIdle)
	header := d.dial().send("GET / HTTP/1.1\r\nX-Half: ")
	body := d.dial().post(10, "half")
	<-reads
	for _, oldest := range []*caller{silent, kept, header, body} {
		d.dial()
		if !oldest.ended() {
			t.Error("the server sent something to a connection that it should close")
		}
	}
	d.check("connections", d.Connections(), 5)
	d.check("a new request", d.dial().send("GET /kept HTTP/1.1\r\nHost: x\r\n\r\n").answer(), http.StatusOK)
	close(release)
	d.check("the long request", worker.answer(), http.StatusOK)
}

// TestNewConnectionGetsInBesideLongRequests fills the server with requests that take long.
func TestNewConnectionGetsInBesideLongRequests(t *testing.T) {
	begins, release := make(chan struct{}), make(chan struct{})
	d := open(t, func(_ *guard.Guard, _ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/work" {
			begins <- struct{}{}
			<-release
		}
	})
	d.SetMaxConnections(2)
	var workers []*caller
	for range 2 {
		workers = append(workers, d.dial().send("GET /work HTTP/1.1\r\nHost: x\r\n\r\n"))
		<-begins
	}
	d.check("a new request", d.dial().send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").answer(), http.StatusOK)
	if !workers[0].ended() {
		t.Error("the longest request goes on")
	}
	close(release)
	d.check("the other request", workers[1].answer(), http.StatusOK)
}

// TestAuthenticatedConnectionsStay fills the server with requests of an authenticated caller, and
// then with connections of strangers: beyond their bound, of all or of one address, a new one
// closes the oldest of them.
func TestAuthenticatedConnectionsStay(t *testing.T) {
	for name, bound := range map[string]func(*guard.Guard, int){"of all": (*guard.Guard).SetMaxConnections, "of an address": (*guard.Guard).SetMaxOfAddress} {
		t.Run(name, func(t *testing.T) {
			begins, release := make(chan struct{}), make(chan struct{})
			d := open(t, func(g *guard.Guard, w http.ResponseWriter, r *http.Request) {
				g.Admit(r)
				_, _ = g.Body(w, r, guard.Limit{Bytes: 10, Time: within})
				begins <- struct{}{}
				<-release
			})
			var workers []*caller
			for range 3 {
				workers = append(workers, d.dial().send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"))
				<-begins
			}
			d.SetMaxConnections(100)
			bound(d.Guard, map[string]int{"of all": 5, "of an address": 2}[name])
			stranger := d.dial()
			d.dial()
			d.dial()
			if !stranger.ended() {
				t.Error("the server sent something to a connection that it should close")
			}
			d.check("connections", d.Connections(), 5)
			close(release)
			for _, w := range workers {
				d.check("an authenticated request", w.answer(), http.StatusOK)
			}
		})
	}
}

// TestClosedConnectionIsForgotten closes a connection from the other side.
func TestClosedConnectionIsForgotten(t *testing.T) {
	d := open(t, func(*guard.Guard, http.ResponseWriter, *http.Request) {})
	_ = d.dial().Close()
	d.await(http.StateClosed)
	d.check("connections", d.Connections(), 0)
}
