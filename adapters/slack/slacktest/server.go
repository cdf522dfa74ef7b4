// Package slacktest is Slack as far as Parley meets it, on a loopback port and with
// faults on demand: the Web API, Socket Mode, and the signed requests of the Events
// API.
//
// It keeps every message, so that tests and the load tool can look at what
// arrived and at what a reader sees now; and it refuses what Slack refuses, with
// Slack's own codes: content that is too long, a stream that has ended, a scope
// that was not granted, calls that come too fast. Options say what kind of Slack
// it is, Script and Plan what goes wrong. It depends on no test framework, and
// whoever can set the address of the Web API can try a set-up against it.
package slacktest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxRequest bounds what one call may send, in bytes.
const maxRequest = 1 << 20

// Call is one request to the Web API.
type Call struct {
	Method string // such as chat.postMessage
	Form   url.Values
	// Client is who calls, where that is told by ClientURL; else empty.
	Client string
}

// Server is a running fake. Its methods are safe for concurrent use.
type Server struct {
	options Options
	url     string
	http    *http.Server
	script  script
	count   atomic.Int64 // posts of the API so far; each takes its number from it
	revoked atomic.Bool
	tiers   tiers
	echo    echo
	// provided is the scopes as the answers' header tells them.
	provided string

	mu          sync.RWMutex
	closed      bool
	channels    map[string]*channel
	users       map[string]User
	files       map[string]File
	uploads     map[string]*upload // until they are shared
	uploadCount int
	stored      int // bytes in uploads that were announced
	shared      []Upload
	ephemerals  []Ephemeral
	assistants  map[string]assistantThread // by channel and thread

	arrived *sync.Cond // landed grew; its lock guards landed
	landed  int        // posts of the API that have taken effect
	stopped chan struct{}
	running sync.WaitGroup

	hub  *hub
	hook atomic.Pointer[Hook] // nil: events go over sockets
}

// Start listens and serves until Close.
func Start(options Options) (*Server, error) {
	options.complete()
	listener, err := net.Listen("tcp", options.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for the fake slack api: %w", err)
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
		arrived:    sync.NewCond(&sync.Mutex{}),
		stopped:    make(chan struct{}),
		hub:        newHub(),
	}
	if options.OnEvent == nil {
		s.options.OnEvent = func(event []byte) { s.Push(event) }
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.running.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// URL is the base of the Web API, as slack.api_url takes it.
func (s *Server) URL() string { return s.url + "/api/" }

// ClientURL is URL for one of several clients: its calls carry its name, which
// must do as a piece of a path.
func (s *Server) ClientURL(name string) string { return s.url + "/" + name + "/api/" }

// Close cuts every connection and returns once nothing of the server runs; what
// was to take effect late no longer does.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stopped)
	}
	s.mu.Unlock()
	err := s.http.Close()
	s.running.Wait()
	return err
}

// enter counts a request that Close waits for; false means that it is too late.
func (s *Server) enter() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

// ServeHTTP answers the Web API under /api/, and under /NAME/api/ to who is called
// so; Socket Mode's sockets under /link/, uploads under /upload/v1/, and downloads
// under /files-pri/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.running.Done()
	if r.URL.Path == linkPath {
		s.link(w, r)
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

// serveCall answers one call of the Web API.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request, client, method string) {
	form, err := readForm(r)
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

// readForm takes arguments the three ways that Slack does: form, JSON, query;
// a token may come as an Authorization header.
func readForm(r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxRequest)
	form := url.Values{}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/json" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, fmt.Errorf("read the body: %w", err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(body, &members); err != nil && len(body) > 0 {
			return nil, fmt.Errorf("decode the body: %w", err)
		}
		for key, raw := range members {
			form.Set(key, argument(raw))
		}
	} else {
		if err := r.ParseForm(); err != nil {
			return nil, fmt.Errorf("parse the form: %w", err)
		}
		form = r.Form
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		form.Set("token", token)
	}
	return form, nil
}

// argument is a JSON value as it would stand in a form.
func argument(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func refusal(code string) []byte { return encode(map[string]any{"ok": false, "error": code}) }

// encode is for values of this package, which always encode.
func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// Await returns the posts as soon as there are n of them, or those there are
// with an error when ctx ends.
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
