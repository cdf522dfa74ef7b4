package postgres_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// message is a protocol message that passes a proxy.
type message struct {
	fromServer bool
	kind       byte   // https://www.postgresql.org/docs/current/protocol-message-formats.html
	query      string // of Parse and Bind
}

// verdict is a rule's decision about a message.
type verdict int

const (
	pass verdict = iota
	cut          // drops the message and closes the connection
	deaf         // passes the message, drops its answers, and closes the connection after the last one
	drop         // drops the message
)

// proxy relays the connections between an engine and its server.
type proxy struct {
	url      string
	listener net.Listener
	server   string
	pumps    sync.WaitGroup

	mu      sync.Mutex
	rule    func(message) verdict // nil: passes all
	refuse  int                   // number of further connections to close at once
	refused chan struct{}         // has a value for each refused connection
	links   map[*link]bool
}

// link is a connection through the proxy.
type link struct {
	proxy          *proxy
	client, server net.Conn
	queries        map[string]string // by name; only the client's pump uses it
	mu             sync.Mutex
	deaf, frozen   bool
}

// through returns a proxy for a database.
func through(t *testing.T, database string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: address.Host, links: map[*link]bool{}, refused: make(chan struct{}, 1<<16)}
	address.Host, address.RawQuery = listener.Addr().String(), "sslmode=disable"
	p.url = address.String()
	p.pumps.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.cut()
		p.pumps.Wait()
	})
	return p
}

// set makes a rule for all further messages.
func (p *proxy) set(rule func(message) verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
}

// turnAway refuses the next n connections.
func (p *proxy) turnAway(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = n
}

// goAway simulates a server that restarts: it closes all connections and refuses the next
// n.
func (p *proxy) goAway(n int) {
	p.turnAway(n)
	p.cut()
}

// wantRefused checks how many connections the proxy has refused.
func (p *proxy) wantRefused(t *testing.T, want int) {
	t.Helper()
	if n := len(p.refused); n != want {
		t.Errorf("%d connections refused, want %d", n, want)
	}
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.close()
	}
}

// freeze drops all further messages of the present connections, as a firewall does that has
// lost its state. New connections work.
func (p *proxy) freeze() {
	p.mu.Lock()
	present := slices.Collect(maps.Keys(p.links))
	p.mu.Unlock()
	for _, l := range present {
		l.mu.Lock()
		l.frozen = true
		l.mu.Unlock()
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refused := p.refuse > 0
		if refused {
			p.refuse--
		}
		p.mu.Unlock()
		server, err := net.Dial("tcp", p.server)
		if refused || err != nil {
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			p.refused <- struct{}{}
			continue
		}
		l := &link{proxy: p, client: client, server: server, queries: map[string]string{}}
		p.mu.Lock()
		p.links[l] = true
		p.mu.Unlock()
		p.pumps.Go(func() { l.pump(client, server, false) })
		p.pumps.Go(func() { l.pump(server, client, true) })
	}
}

func (l *link) close() {
	_, _ = l.client.Close(), l.server.Close()
}

// pump relays messages in one direction until the connection ends.
func (l *link) pump(from, to net.Conn, fromServer bool) {
	defer l.close()
	for first := !fromServer; ; first = false {
		raw, err := next(from, first)
		if err != nil {
			return
		}
		if first {
			_, _ = to.Write(raw)
			continue
		}
		m := message{fromServer: fromServer, kind: raw[0]}
		if !fromServer {
			m.query = l.query(raw)
		}
		switch l.judge(m) {
		case cut:
			return
		case drop:
			continue
		}
		if _, err := to.Write(raw); err != nil {
			return
		}
	}
}

// judge returns the verdict about a message.
func (l *link) judge(m message) verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen {
		return drop
	}
	if l.deaf && m.fromServer {
		if m.kind == 'Z' {
			return cut
		}
		return drop
	}
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if l.proxy.rule == nil {
		return pass
	}
	v := l.proxy.rule(m)
	l.deaf = l.deaf || v == deaf
	return v
}

// query returns the query of a Parse or Bind; empty for other messages.
func (l *link) query(raw []byte) string {
	fields := bytes.SplitN(raw[5:], []byte{0}, 3)
	switch {
	case raw[0] == 'P':
		l.queries[string(fields[0])] = string(fields[1])
		return string(fields[1])
	case raw[0] == 'B':
		return l.queries[string(fields[1])]
	}
	return ""
}

// next reads a message. The first message of a client has no kind.
func next(from io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(head[len(head)-4:])) - 4
	raw := append(head, make([]byte, size)...)
	_, err := io.ReadFull(from, raw[len(head):])
	return raw, err
}

// at returns a rule that gives a verdict about the first Bind of a query, and passes
// all other messages.
func at(query string, v verdict) func(message) verdict {
	done := false
	return func(m message) verdict {
		if done || m.kind != 'B' || m.query != query {
			return pass
		}
		done = true
		return v
	}
}
