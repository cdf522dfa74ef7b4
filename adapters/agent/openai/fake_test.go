package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"parley/adapters/agent/openai"
	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/config/secret"
	"parley/ingest/stream"
)

const canary = "sk-canary-5d1e"

func config(address string) openai.Config {
	return openai.Config{BaseURL: address + "/v1", APIKey: secret.New(canary), Model: "llama3.2", MaxImageBytes: remote.DefaultImageBytes, Config: remote.DefaultConfig(), Messages: remote.Auto,
		Reading: remote.DefaultReading(), Pictures: remote.DefaultPictures()}
}

// hello returns the input of a minimal run.
func hello() assembly.Input {
	return assembly.Input{RunID: "run-1", Messages: []assembly.Message{
		{Role: assembly.RoleUser, Parts: []assembly.Part{{Text: "[Olivia]: hi"}}},
	}}
}

// model returns an agent whose server runs the handler on a loopback socket.
func model(t *testing.T, handler http.HandlerFunc) *openai.Agent {
	t.Helper()
	server := httptest.NewServer(readFirst(handler))
	t.Cleanup(server.Close)
	return openai.New(config(server.URL), nil, server.Client().Transport)
}

// bubbled returns an agent whose server runs the handler on pipes. It is for tests in a
// synctest bubble, where time passes only while every goroutine waits.
func bubbled(t *testing.T, change func(*openai.Config), handler http.HandlerFunc) *openai.Agent {
	t.Helper()
	pipes := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: readFirst(handler)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(pipes) })
	transport := &http.Transport{DialContext: pipes.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		serving.Wait()
	})
	settings := config("http://model.test")
	if change != nil {
		change(&settings)
	}
	return openai.New(settings, nil, transport)
}

// readFirst reads the request before it calls the handler. The server notices a disconnected
// client only after that.
func readFirst(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler(w, r)
	}
}

// pipes is a net.Listener of net.Pipe connections.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return buffer(client), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// buffered is a connection with a buffer for what has arrived, as that of a socket.
type buffered struct {
	net.Conn
	mu      sync.Mutex
	more    *sync.Cond
	arrived bytes.Buffer
	err     error
}

// buffer returns a connection whose other end need not wait for its reads.
func buffer(conn net.Conn) net.Conn {
	b := &buffered{Conn: conn}
	b.more = sync.NewCond(&b.mu)
	go func() {
		part := make([]byte, 1<<10)
		for {
			n, err := conn.Read(part)
			b.mu.Lock()
			b.arrived.Write(part[:n])
			b.err = err
			b.mu.Unlock()
			if b.more.Broadcast(); err != nil {
				return
			}
		}
	}()
	return b
}

func (b *buffered) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.arrived.Len() == 0 && b.err == nil {
		b.more.Wait()
	}
	if b.arrived.Len() > 0 {
		return b.arrived.Read(p)
	}
	return 0, b.err
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// speaker writes an event stream and flushes after each piece.
type speaker struct{ http.ResponseWriter }

func speak(w http.ResponseWriter) speaker {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	return speaker{w}
}

func (s speaker) raw(text string) speaker {
	fmt.Fprint(s, text)
	_ = http.NewResponseController(s.ResponseWriter).Flush()
	return s
}

func (s speaker) delta(text string) speaker {
	quoted, _ := json.Marshal(text)
	return s.raw(`data: {"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":` + string(quoted) + `},"finish_reason":null}]}` + "\n\n")
}

func (s speaker) finish(reason string) speaker {
	return s.raw(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\n")
}

func (s speaker) done() { s.raw("data: [DONE]\n\n") }

// run runs the agent on hello and returns the emitted messages.
func run(ctx context.Context, agent *openai.Agent) (emitted []stream.Message, err error) {
	err = agent.Run(ctx, hello(), func(m stream.Message) error {
		emitted = append(emitted, m)
		return nil
	})
	return emitted, err
}

// of returns the messages of one type.
func of(emitted []stream.Message, kind stream.Type) (found []stream.Message) {
	for _, m := range emitted {
		if m.Type == kind {
			found = append(found, m)
		}
	}
	return found
}

func texts(emitted []stream.Message) (all []string) {
	for _, m := range emitted {
		all = append(all, m.Text)
	}
	return all
}
