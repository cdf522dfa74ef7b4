package web

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters/guard"
	"parley/config/secret"
	"parley/ingest/journal"
)

// tap is a source that a test fills.
type tap struct {
	changed chan struct{}
	mu      sync.Mutex
	events  []sent
	last    bool
	err     error
}

func (t *tap) source() source {
	return source{changed: t.changed, next: func(context.Context) ([]sent, bool, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		events := t.events
		t.events = nil
		return events, t.last, t.err
	}}
}

// have sets the results of the next read.
func (t *tap) have(last bool, err error, events ...sent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events, t.last, t.err = events, last, err
}

// ear is the reader of a stream. It takes nothing after a number of bytes.
type ear struct {
	http.ResponseWriter
	mu       sync.Mutex
	body     bytes.Buffer
	takes    int
	deadline time.Time
}

func newEar() *ear { return &ear{ResponseWriter: httptest.NewRecorder(), takes: 1000} }

func (*ear) Flush() {}

func (e *ear) SetWriteDeadline(t time.Time) error {
	e.deadline = t
	return nil
}

func (e *ear) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.body.Len()+len(p) > e.takes {
		<-time.After(time.Until(e.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	return e.body.Write(p)
}

// heard returns the bytes since the last call.
func (e *ear) heard() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return string(e.body.Next(e.body.Len()))
}

func (e *ear) deaf() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.takes = 0
}

// following runs a stream in a bubble. stop ends its request.
func following(t *testing.T, streams *Streams, w http.ResponseWriter, s source) (ended chan struct{}, stop func()) {
	return followed(t, callOf(streams), w, s)
}

// callOf returns a call with a token that stays.
func callOf(streams *Streams) Call {
	token := Token{ID: "olivia"}
	ours := []*Adapter{New("ours", Config{Tokens: []Token{token}})}
	return Documents{
		Adapters: func() []*Adapter { return ours },
		API: func(workspace string) API {
			return API{Workspace: workspace, Streams: streams, Guard: guard.New(func(string) {})}
		},
	}.call(ours[0], token)
}

// followed runs the stream of a call. stop ends its request.
func followed(t *testing.T, c Call, w http.ResponseWriter, s source) (ended chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		c.Serve(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), func(_ API, w http.ResponseWriter, r *http.Request) error { return c.follow(w, r, s) })
	}()
	synctest.Wait()
	return ended, cancel
}

// TestStreamSendsWhatItsSourceHas checks the form of the events, and that a wake makes a stream
// look at once.
func TestStreamSendsWhatItsSourceHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, out := &tap{changed: make(chan struct{})}, newEar()
		ended, _ := following(t, NewStreams(), out, from.source())
		from.have(false, nil, sent{"7", "", map[string]string{"content": "a <b>\nc"}}, sent{"", "edit", 1})
		from.changed <- struct{}{}
		synctest.Wait()
		from.have(true, nil, sent{"8", "", "end"})
		from.changed <- struct{}{}
		<-ended
		const want = ":\n\nid: 7\ndata: {\"content\":\"a <b>\\nc\"}\n\nevent: edit\ndata: 1\n\nid: 8\ndata: \"end\"\n\n"
		if got := out.heard(); got != want || out.Header().Get("Content-Type") != "text/event-stream; charset=utf-8" {
			t.Errorf("%q as %s; want %q", got, out.Header().Get("Content-Type"), want)
		}
	})
}

// TestHeadOfAStreamEnds checks that the connection is free again after the headers.
func TestHeadOfAStreamEnds(t *testing.T) {
	out := newEar()
	c := callOf(NewStreams())
	c.Serve(out, httptest.NewRequestWithContext(t.Context(), http.MethodHead, "/", nil), func(_ API, w http.ResponseWriter, r *http.Request) error {
		return c.follow(w, r, (&tap{}).source())
	})
	if got := out.Header().Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
		t.Errorf("the type is %q", got)
	}
}

// TestStreamLooksWithoutWake checks that a lost wake only delays an event, and that a silent
// stream sends a comment.
func TestStreamLooksWithoutWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, out := &tap{}, newEar()
		ended, stop := following(t, NewStreams(), out, from.source())
		from.have(false, nil, sent{"1", "", 1})
		<-time.After(heartbeat)
		synctest.Wait()
		if got := out.heard(); got != ":\n\nid: 1\ndata: 1\n\n" {
			t.Errorf("without a wake: %q", got)
		}
		<-time.After(2 * heartbeat)
		synctest.Wait()
		if got := out.heard(); got != ":\n\n:\n\n" {
			t.Errorf("in two heartbeats: %q", got)
		}
		stop()
		<-ended
	})
}

// TestStreamEnds checks every end of a stream: its reader is too slow, its thread is gone, or
// the server stops. A source that cannot be read now ends no stream.
func TestStreamEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(s *Streams, from *tap, w *ear)
		after time.Duration
	}{
		"slow reader": {func(_ *Streams, from *tap, w *ear) { w.deaf(); from.have(false, nil, sent{"1", "", 1}) }, heartbeat + slowReader},
		"gone":        {func(_ *Streams, from *tap, _ *ear) { from.have(false, journal.ErrNotFound) }, heartbeat},
		"stop":        {func(s *Streams, _ *tap, _ *ear) { s.Close() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				from, w, streams := &tap{err: errors.New("busy")}, newEar(), NewStreams()
				begun := time.Now()
				ended, _ := following(t, streams, w, from.source())
				c.end(streams, from, w)
				<-ended
				if took := time.Since(begun); took != c.after {
					t.Errorf("the stream ended after %s, want %s", took, c.after)
				}
				if name == "gone" && !w.deadline.After(time.Now()) {
					t.Error("the server may not write the end of the stream")
				}
				if len(streams.open) != 0 {
					t.Errorf("the ended stream still counts: %v", streams.open)
				}
			})
		})
	}
}

// TestStreamEndsWithItsToken checks that a stream sends nothing after a reload has removed its
// token, or changed the secret or the rights.
func TestStreamEndsWithItsToken(t *testing.T) {
	token := func(secretText string, read ...string) Token {
		return Token{ID: "olivia", Token: secret.New(secretText), Read: read}
	}
	for name, c := range map[string]struct {
		next []*Adapter
		want string
	}{
		"same":      {[]*Adapter{New("ours", Config{Tokens: []Token{token("one", "acme")}})}, ":\n\nid: 1\ndata: 1\n\n"},
		"removed":   {[]*Adapter{New("ours", Config{Tokens: []Token{{ID: "mara", Token: secret.New("two")}}})}, ":\n\n"},
		"rotated":   {[]*Adapter{New("ours", Config{Tokens: []Token{token("two", "acme")}})}, ":\n\n"},
		"fewer":     {[]*Adapter{New("ours", Config{Tokens: []Token{token("one")}})}, ":\n\n"},
		"moved":     {[]*Adapter{New("theirs", Config{Tokens: []Token{token("one", "acme")}})}, ":\n\n"},
		"workspace": {nil, ":\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := []*Adapter{New("ours", Config{Tokens: []Token{token("one", "acme")}})}
				d := Documents{Adapters: func() []*Adapter { return now }, API: func(workspace string) API {
					return API{Workspace: workspace, Streams: NewStreams(), Guard: guard.New(func(string) {})}
				}}
				from, out := &tap{changed: make(chan struct{})}, newEar()
				ended, stop := followed(t, d.call(now[0], token("one", "acme")), out, from.source())
				now = c.next
				from.have(false, nil, sent{"1", "", 1})
				from.changed <- struct{}{}
				synctest.Wait()
				if got := out.heard(); got != c.want {
					t.Errorf("the stream sent %q, want %q", got, c.want)
				}
				if name == "same" {
					stop()
				}
				<-ended
			})
		})
	}
}

// TestStreamsOfTokenAreBounded checks the bound, and that an ended stream makes room.
func TestStreamsOfTokenAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams, stops := NewStreams(), []func(){}
		for range maxStreams {
			_, stop := following(t, streams, httptest.NewRecorder(), (&tap{}).source())
			stops = append(stops, stop)
		}
		out := httptest.NewRecorder()
		ended, _ := following(t, streams, out, (&tap{}).source())
		<-ended
		if wait, _ := strconv.Atoi(out.Header().Get("Retry-After")); out.Code != http.StatusTooManyRequests || wait <= 0 {
			t.Errorf("one stream too many: %d, Retry-After %d", out.Code, wait)
		}
		stops[0]()
		synctest.Wait()
		out = httptest.NewRecorder()
		if following(t, streams, out, (&tap{}).source()); out.Code != http.StatusOK {
			t.Errorf("after one has ended: %d", out.Code)
		}
		streams.Close()
	})
}
