// Package slacktest is a fake of Slack on a loopback port, with faults on demand. It
// implements the parts that Parley uses: the Web API, Socket Mode, and the signed requests of
// the Events API.
//
// It stores every message, so that tests and the load tool can look at the calls that arrived
// and at the messages that a reader sees now. It refuses the same calls as Slack with the
// same codes: content that is too long, a stream that has ended, a missing scope, calls that
// come too fast. Options configure it, and Script and Plan set its faults. It depends on no
// test framework, so it can serve any program whose address of the Web API can be set.
package slacktest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/adaptertest/faults"
	"parley/adapters/slack/slacktest/internal/delivery"
	"parley/adapters/slack/slacktest/internal/life"
	"parley/adapters/slack/slacktest/internal/wire"
)

// Call is one request to the Web API.
type Call struct {
	Method string // such as chat.postMessage
	Form   url.Values
	// Client is the name in the ClientURL of the caller, or empty.
	Client string
}

// Server is a running fake. Its methods are safe for concurrent use.
type Server struct {
	options Options
	url     string
	http    *http.Server
	script  faults.Script[Call, Fault]
	count   atomic.Int64 // posts of the API so far; numbers them
	revoked atomic.Bool
	tiers   tiers
	echo    echo
	// provided is the list of scopes in the response header.
	provided string

	mu          sync.RWMutex
	channels    map[string]*channel
	users       map[string]User
	groups      map[string][]string // the members of user groups
	files       map[string]File
	uploads     map[string]*upload // not shared yet
	uploadCount int
	stored      int // bytes of announced uploads
	shared      []Upload
	ephemerals  []Ephemeral
	assistants  map[string]assistantThread // by channel and thread
	commands    map[string]*responseURL    // by name

	arrived *sync.Cond // signals that landed grew; its lock guards landed
	landed  int        // posts of the API that have taken effect

	life *life.Life
	*delivery.Hub
}

// Start listens and serves until Close.
func Start(options Options) (*Server, error) {
	options.complete()
	listener := options.Listener
	if listener == nil {
		var err error
		if listener, err = net.Listen("tcp", options.Address); err != nil {
			return nil, fmt.Errorf("listen for the fake slack api: %w", err)
		}
	}
	s := &Server{
		options:    options,
		url:        "http://" + listener.Addr().String(),
		provided:   strings.Join(options.Scopes, ","),
		channels:   map[string]*channel{},
		users:      map[string]User{},
		files:      map[string]File{},
		uploads:    map[string]*upload{},
		assistants: map[string]assistantThread{},
		commands:   map[string]*responseURL{},
		arrived:    sync.NewCond(&sync.Mutex{}),
		life:       life.New(),
	}
	s.Hub = delivery.New(s.life, options.SocketOptions, App, Sign)
	if options.OnEvent == nil {
		s.options.OnEvent = func(event []byte) { s.Push(event) }
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.life.Running.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// URL returns the base URL of the Web API for slack.api_url.
func (s *Server) URL() string { return s.url + "/api/" }

// ClientURL returns a URL for one of several clients. Its calls carry the client's name,
// which must be a valid path segment.
func (s *Server) ClientURL(name string) string { return s.url + "/" + name + "/api/" }

// Close cuts every connection, and waits until no goroutine of the server is left. Delayed
// effects do not happen any more.
func (s *Server) Close() error {
	s.life.End()
	err := s.http.Close()
	s.life.Running.Wait()
	return err
}

// ServeHTTP serves the Web API under /api/ and, for a named client, under /NAME/api/. It also
// serves sockets of Socket Mode under /link/, uploads under /upload/v1/, and downloads under
// /files-pri/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.life.Enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.life.Running.Done()
	if r.URL.Path == linkPath {
		s.link(w, r)
		return
	}
	if strings.HasPrefix(r.URL.Path, responses) {
		s.serveResponse(w, r)
		return
	}
	client, method, isCall := strings.Cut(r.URL.Path, "/api/")
	switch {
	case strings.HasPrefix(r.URL.Path, uploads):
		s.takeUpload(w, r)
	case !isCall || strings.HasPrefix(r.URL.Path, downloads):
		s.download(w, r)
	default:
		s.serveCall(w, r, strings.TrimPrefix(client, "/"), method)
	}
}

// serveCall serves one call of the Web API.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, client, method string) {
	form, err := wire.ReadForm(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	call := Call{Method: method, Form: form, Client: client}
	if s.options.OnCall != nil {
		s.options.OnCall(call)
	}
	f := s.fault(call)
	if !f.answers() {
		if wait := s.throttle(call); wait > 0 {
			f = RateLimited(wholeSeconds(wait))
		}
	}
	header := w.Header()
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("X-OAuth-Scopes", s.provided)
	s.answer(w, r, f, func() []byte { return s.respond(call) })
}

// Await waits until there are n posts and returns them. If ctx ends first, it returns the
// present posts and an error.
func (s *Server) Await(ctx context.Context, n int) ([]Post, error) {
	stop := context.AfterFunc(ctx, func() {
		s.arrived.L.Lock()
		defer s.arrived.L.Unlock()
		s.arrived.Broadcast()
	})
	defer stop()
	s.arrived.L.Lock()
	for s.landed < n && ctx.Err() == nil {
		s.arrived.Wait()
	}
	s.arrived.L.Unlock()
	posts := s.Posts()
	if len(posts) < n {
		return posts, fmt.Errorf("%d of %d posts arrived: %w", len(posts), n, context.Cause(ctx))
	}
	return posts, nil
}
