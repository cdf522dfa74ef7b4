// Package slacktest is Slack as far as Parley meets it, on a loopback port and with
// faults on demand: the Web API, Socket Mode, and the signed requests of the Events
// API.
//
// It keeps every message that was posted, so that tests and the load tool can
// look at what arrived. It depends on no test framework.
package slacktest

import (
	"cmp"
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

// Who we are on a Server whose Options leave it open.
const (
	Team    = "T0TEAM"
	App     = "A0APP"
	BotUser = "U0BOT"
	BotID   = "B0BOT"
	Token   = "xoxb-slacktest"
	// AppToken is what opens sockets; no other method takes it.
	AppToken = "xapp-slacktest"
)

// maxRequest bounds what one call may send, in bytes.
const maxRequest = 1 << 20

// Options say what a Server is like. The zero value knows one bot, the
// constants of this package, and has no faults.
type Options struct {
	// Address is where it listens; "127.0.0.1:0" if empty.
	Address string
	// Token is the bot's, and AppToken the app's, which apps.connections.open asks
	// for. No others are taken.
	Token, AppToken string
	// Team, BotUser and BotID are what auth.test tells, and whose every post is.
	Team, BotUser, BotID string
	// Enterprise is the id of the organization that the workspace belongs to; none
	// if empty.
	Enterprise string
	// Scopes are what the bot was granted; AllScopes if nil.
	Scopes []string
	// Now is the clock that timestamps come from; the system's if nil.
	Now func() time.Time
	// Plan chooses the fault of a call that no Script provides for; none if nil.
	// It is called concurrently. See Mix.
	Plan func(Call) Fault
	// OnCall sees every call as soon as it was read, before its fault.
	OnCall func(Call)
	// OnDownload sees every request for a file, before its answer.
	OnDownload func(*http.Request)
	// OnPost sees every post of the API when it takes effect, and OnChange each of
	// its changes: an update, what is appended to a stream, its end, a deletion.
	OnPost, OnChange func(Post)

	// NoMarkdownBlocks makes a Slack that does not know them: invalid_blocks.
	NoMarkdownBlocks bool
	// NoStreams is what chat.startStream and its like answer on a Slack that has no
	// streams, such as unknown_method or method_not_supported_for_channel_type.
	NoStreams string
	// StreamAge and StreamLimit are when a stream is closed: 5 minutes after its
	// start, and before it has more than 12,000 characters, if 0.
	StreamAge   time.Duration
	StreamLimit int

	// PostRate is how many posts, changes and pieces of streams a second one
	// channel takes; more are answered with 429. As many as come if 0.
	PostRate float64
	// Tiers holds each method to its tier's calls a minute.
	Tiers bool

	// Echo tells the app of its own doings too, as Slack does.
	Echo bool
	// OnEvent takes the events of these, each the inner event's JSON, in the order in
	// which they happened in their channel; if nil they are pushed to the app.
	OnEvent func(event []byte)
	SocketOptions
}

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
	setDefault(&options.Address, "127.0.0.1:0")
	setDefault(&options.Token, Token)
	setDefault(&options.AppToken, AppToken)
	setDefault(&options.Team, Team)
	setDefault(&options.BotUser, BotUser)
	setDefault(&options.BotID, BotID)
	if options.Now == nil {
		options.Now = time.Now
	}
	options.SocketOptions.complete()
	if options.Scopes == nil {
		options.Scopes = AllScopes()
	}
	options.StreamAge = cmp.Or(options.StreamAge, streamAge)
	options.StreamLimit = cmp.Or(options.StreamLimit, maxMarkdown)
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
	if s.options.OnEvent == nil {
		s.options.OnEvent = func(event []byte) { s.Push(event) }
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.running.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
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
