// Package agenttest tests agents behind HTTP servers: it has a server whose answers a test
// writes byte by byte, and the promises that every such agent keeps, however its server
// misbehaves.
package agenttest

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/stream"
)

// Canary is a secret of the agents under test. No error may contain it.
const Canary = "sk-canary-5d1e-canary-5d1e"

// Hello returns the input of a minimal run.
func Hello() assembly.Input {
	return assembly.Input{
		RunToken: secret.New(RunToken),
		RunID:    "run-1", ThreadID: "5f0c9a4e-8f5e-5c5a-9b5e-0d6f8f3c1a11", Workspace: "acme", Platform: "slack",
		Messages: []assembly.Message{{ID: "m1", Role: assembly.RoleUser, Parts: []assembly.Part{{Text: "[Olivia]: hi"}}}},
		Said:     []assembly.Said{{ID: "m1", Content: "hi", Metadata: []byte(`{"sender_id":"slack:U1"}`)}},
	}
}

// Given returns the input of a run whose client gave tools, context, state, properties, and
// messages after the user's.
func Given() assembly.Input {
	input := Hello()
	input.Given, _ = runinput.ReadRest([]byte(`{"state":{"n":1},"tools":[{"name":"f","description":"d","parameters":{}}],
		"context":[{"description":"page","value":"home"}],"forwardedProps":{"k":[]},"resume":[{"interruptId":"i","status":"resolved"}],
		"messages":[{"id":"u","role":"user","encryptedValue":"e"},{"id":"m2","role":"tool","content":"ok","toolCallId":"c","x":1}]}`)) // it is valid
	return input
}

// PNG is the content of an image.
const PNG = "\x89PNG\r\n\x1a\npixels"

// Shelf is an agent.Files of contents by path.
type Shelf map[string]string

// Open implements agent.Files.
func (s Shelf) Open(_ context.Context, _, path string) (io.ReadCloser, error) {
	content, ok := s[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

// Looks returns the input of a run whose message has an image and a document, and the files.
func Looks() (assembly.Input, Shelf) {
	image := assembly.File{Name: "a.png", MimeType: "image/png", Size: int64(len(PNG)), Path: "p"}
	document := assembly.File{Name: "b.pdf", MimeType: "application/pdf", Size: 8, Path: "d"}
	input := Hello()
	input.Said[0].Files = []assembly.File{image, document}
	input.Messages[0].Parts = append(input.Messages[0].Parts, assembly.Part{File: &image}, assembly.Part{File: &document})
	return input, Shelf{"p": PNG, "d": "%PDF-1.7"}
}

// Serve runs the handler on a loopback socket and returns its address.
func Serve(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(readFirst(handler))
	t.Cleanup(server.Close)
	return server.URL
}

// Pipes runs the handler on pipes and returns a transport that reaches it at any address. It
// is for tests in a synctest bubble, where time passes only while every goroutine waits.
func Pipes(t testing.TB, handler http.HandlerFunc) http.RoundTripper {
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
	return transport
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
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// Stream begins an event stream with these bytes.
func Stream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	Write(w, text)
}

// Write writes and flushes.
func Write(w http.ResponseWriter, text string) {
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

// Run runs the agent and returns the emitted messages.
func Run(ctx context.Context, agent turn.Agent, input assembly.Input) (emitted []stream.Message, err error) {
	err = agent.Run(ctx, input, func(m stream.Message) error {
		emitted = append(emitted, m)
		return nil
	})
	return emitted, err
}

// Texts returns the texts of the messages of one type.
func Texts(emitted []stream.Message, kind stream.Type) (texts []string) {
	for _, m := range emitted {
		if m.Type == kind {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// Response returns a response of status 200, for transports without a server.
func Response(kind, body string) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body))}
}
