package exchange

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
	"parley/ingest/journal/storage"
)

// tap is a source that a test fills.
type tap struct {
	changed chan struct{}
	mu      sync.Mutex
	events  []Event
	last    bool
	err     error
}

func (t *tap) source() Source {
	return Source{Changed: t.changed, Next: func(context.Context) ([]Event, bool, error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		events := t.events
		t.events = nil
		return events, t.last, t.err
	}}
}

// have sets the results of the next read.
func (t *tap) have(last bool, err error, events ...Event) {
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

// olivia is a caller whose token stays.
type olivia struct{}

func (olivia) Owner() Owner { return Owner{Workspace: "ours", Token: "olivia"} }

func (olivia) IsAdmitted() bool { return true }

// following runs a stream in a bubble. stop ends its request.
func following(t *testing.T, streams *Streams, w http.ResponseWriter, s Source) (ended chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		serve(streams, s)(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	}()
	synctest.Wait()
	return ended, cancel
}

// serve returns the handler of a stream.
func serve(streams *Streams, s Source) http.HandlerFunc {
	return Handler(guard.New(func(string) {}), "", func(w http.ResponseWriter, r *http.Request) error {
		return streams.Follow(w, r, olivia{}, s)
	})
}

// TestStreamSendsWhatItsSourceHas checks the form of the events, and that a wake makes a stream
// look at once.
func TestStreamSendsWhatItsSourceHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, out := &tap{changed: make(chan struct{})}, newEar()
		ended, _ := following(t, NewStreams(), out, from.source())
		from.have(false, nil, Event{"7", "", map[string]string{"content": "a <b>\nc"}}, Event{"", "edit", 1})
		from.changed <- struct{}{}
		synctest.Wait()
		from.have(true, nil, Event{"8", "", "end"})
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
	serve(NewStreams(), (&tap{}).source())(out, httptest.NewRequestWithContext(t.Context(), http.MethodHead, "/", nil))
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
		from.have(false, nil, Event{"1", "", 1})
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
		"slow reader": {func(_ *Streams, from *tap, w *ear) { w.deaf(); from.have(false, nil, Event{"1", "", 1}) }, heartbeat + slowReader},
		"gone":        {func(_ *Streams, from *tap, _ *ear) { from.have(false, storage.ErrNotFound) }, heartbeat},
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

// TestStreamsOfTokenAreBounded checks the bound, and that an ended stream makes room.
// leaving is a caller whose token ends.
type leaving struct {
	olivia
	left bool
}

func (l *leaving) IsAdmitted() bool { return !l.left }

// TestAStreamTellsNothingAfterItsToken has a token that ends during a read.
func TestAStreamTellsNothingAfterItsToken(t *testing.T) {
	caller, out := &leaving{}, newEar()
	from := Source{Next: func(context.Context) ([]Event, bool, error) {
		caller.left = true
		return []Event{{Data: "later"}}, false, nil
	}}
	if err := NewStreams().Follow(out, httptest.NewRequest(http.MethodGet, "/", nil), caller, from); err != nil {
		t.Fatal(err)
	}
	if heard := out.heard(); heard != ":\n\n" {
		t.Errorf("heard %q", heard)
	}
}

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
