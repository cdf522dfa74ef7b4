// Package discordtest is a fake of Discord on a loopback port, with faults on demand. It
// implements the parts that Parley uses: the REST API, the gateway, and the file host.
//
// It stores every message, so that tests and the load tool can look at what a reader sees now.
// It refuses the same calls as Discord with the same codes: content that is too long, a wrong
// token, calls that come too fast, a session that is unknown. Options configure it; Script,
// Plan and Drop set its faults. It depends on no test framework, so it can serve any program
// whose address of the API can be set.
package discordtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/adapters/adaptertest/faults"
)

// The identity of the bot on a Server.
const (
	BotUser = "900000000000000001"
	App     = "900000000000000002"
	BotRole = "900000000000000003" // in every guild
	Token   = "discordtest-token"
)

// apiPath is the path below which the API is served.
const apiPath = "/api/v10"

// Options configure a Server. The zero value has no faults and no limits.
type Options struct {
	// Address is the address to listen on; "127.0.0.1:0" if empty.
	Address string
	// NoEmbeds makes the server drop embeds, as Discord does where the bot may not embed links.
	NoEmbeds bool
	// Token is the bot's token.
	Token string
	// Heartbeat is the interval that the gateway asks for; Discord's 41.25 s if zero.
	Heartbeat time.Duration
	// Shards is the number of shards that the API recommends; 1 if zero.
	Shards int
	// Starts is the number of sessions that the bot may still start today; 1000 if zero.
	// Concurrency is the number of sessions that it may start in IdentifyPer; 1 if zero.
	Starts, Concurrency int
	// IdentifyPer is Discord's period for starting sessions; there is no limit if zero.
	IdentifyPer time.Duration
	// NoContent makes the gateway refuse the message-content intent with 4014.
	NoContent bool
	// Public says that anybody may add the bot to a server.
	Public bool
	// PostLimit is the number of posts and edits that a channel takes in PostPer; without
	// limit if zero. The headers of each response tell the present state.
	PostLimit int
	PostPer   time.Duration
	// NonceFor is the time for which a nonce is enforced; 5 minutes if zero.
	NonceFor time.Duration
	// HistoryLag is the time after which a page shows a user's message.
	HistoryLag time.Duration
	// Plan returns the fault of a call for which Script has none; no fault if nil. It is
	// called concurrently.
	Plan func(Call) Fault
	// OnCall receives every call as soon as it was read, before its fault.
	OnCall func(Call)
	// OnPost receives every post of the bot when it takes effect, and OnChange each of its
	// edits and deletions.
	OnPost, OnChange func(Message)
	// OnSession is called when a session begins or is resumed.
	OnSession func(resumed bool)
	// Now is the clock; the system's if nil.
	Now func() time.Time
}

func (o *Options) complete() {
	setDefault(&o.Address, "127.0.0.1:0")
	setDefault(&o.Token, Token)
	setDefault(&o.Heartbeat, 41250*time.Millisecond)
	setDefault(&o.Shards, 1)
	setDefault(&o.Starts, 1000)
	setDefault(&o.Concurrency, 1)
	setDefault(&o.NonceFor, 5*time.Minute)
	if o.OnSession == nil {
		o.OnSession = func(bool) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

func setDefault[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// Server is a running fake. Its methods are safe for concurrent use.
type Server struct {
	options Options
	url     string
	http    *http.Server
	api     *http.ServeMux
	script  faults.Script[Call, Fault]
	stopped chan struct{}
	running sync.WaitGroup

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change of a field below
	closed   bool
	revoked  bool
	lastID   uint64
	guilds   map[string]*Guild
	channels map[string]*channel
	users    map[string]User
	files    map[string]File
	buckets  map[string]*bucket
	typing   map[string]int // calls by channel
	asked    map[string]*Interaction
	commands map[string]json.RawMessage // registered, by name and type
	upserts  int
	posted   int // posts of the bot so far

	sessions   map[string]*session
	conns      map[*conn]bool
	identifies int
	resumes    int
	started    []time.Time // the last identifies
}

// Start listens and serves until Close.
func Start(options Options) (*Server, error) {
	options.complete()
	listener, err := net.Listen("tcp", options.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for the fake discord api: %w", err)
	}
	s := &Server{
		options: options, url: "http://" + listener.Addr().String(), stopped: make(chan struct{}), changed: make(chan struct{}),
		guilds: map[string]*Guild{}, channels: map[string]*channel{}, users: map[string]User{}, files: map[string]File{},
		buckets: map[string]*bucket{}, typing: map[string]int{}, asked: map[string]*Interaction{}, commands: map[string]json.RawMessage{},
		sessions: map[string]*session{}, conns: map[*conn]bool{},
	}
	s.users[BotUser] = User{ID: BotUser, Username: "parley", Bot: true}
	s.api = s.routes()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.running.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

// URL returns the base URL of the API for discord.api_url.
func (s *Server) URL() string { return s.url + apiPath }

// ClientURL returns a URL for one of several clients. Its calls carry the client's name,
// which must be a valid path segment.
func (s *Server) ClientURL(name string) string { return s.url + "/" + name + apiPath }

// Close cuts every connection, and waits until no goroutine of the server is left.
func (s *Server) Close() error {
	s.change(func() {
		if !s.closed {
			s.closed = true
			close(s.stopped)
		}
		for c := range s.conns {
			c.cut()
		}
	})
	err := s.http.Close()
	s.running.Wait()
	return err
}

// Revoke revokes the token: the server refuses every later call and session.
func (s *Server) Revoke() { s.change(func() { s.revoked = true }) }

// change calls f under the lock and wakes the waiting goroutines.
func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until ok returns true, or returns an error if ctx ends first.
func (s *Server) await(ctx context.Context, ok func() bool) error {
	for {
		s.mu.Lock()
		done, changed := ok(), s.changed
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ServeHTTP serves the API, the gateway under /gateway, and files under /attachments/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.running.Add(1)
	}
	s.mu.Unlock()
	if closed {
		panic(http.ErrAbortHandler)
	}
	defer s.running.Done()
	client, path, isCall := strings.Cut(r.URL.Path, apiPath)
	switch {
	case r.URL.Path == "/gateway/":
		s.openGateway(w, r)
	case isCall:
		s.serveCall(w, r, strings.TrimPrefix(client, "/"), path)
	default:
		s.download(w, r)
	}
}

// newID returns a snowflake that is greater than every earlier one. The caller holds the lock.
// https://docs.discord.com/developers/reference#snowflakes
func (s *Server) newID() string { return s.newIDAt(s.options.Now()) }

func (s *Server) newIDAt(at time.Time) string {
	const epoch = 1_420_070_400_000
	id := uint64(at.UnixMilli()-epoch) << 22
	s.lastID = max(s.lastID+1, id)
	return fmt.Sprint(s.lastID)
}

// encode encodes values of this package, which always succeeds.
func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
