package exchange

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

const (
	// heartbeat is the silence after which a stream reads the store without a wake, and sends a
	// comment, so that no proxy closes it and a dead reader is noticed.
	heartbeat = 15 * time.Second
	// slowReader bounds one write to a reader. A slower reader is cut off; it can come back
	// with Last-Event-ID.
	slowReader = 10 * time.Second
	// maxStreams bounds the open streams of one token on this node.
	maxStreams = 1000
)

// Streams are the open event streams of a server, by token.
type Streams struct {
	closing chan struct{}
	end     sync.Once
	mu      sync.Mutex
	open    map[Owner]int
	pages   answers // of streams and of all other answers
}

// Owner is a token that has streams open: the id of its workspace, and its own.
type Owner struct{ Workspace, Token string }

// Begin waits until one more page of the store may be read for a token, or until ctx ends. The caller calls
// end after the page was written.
func (s *Streams) Begin(ctx context.Context, o Owner) (end func(), err error) {
	return s.pages.begin(ctx, o)
}

// NewStreams returns no streams.
func NewStreams() *Streams {
	return &Streams{closing: make(chan struct{}), open: map[Owner]int{}}
}

// Close ends all streams, because the server stops. It does not wait for them.
func (s *Streams) Close() { s.end.Do(func() { close(s.closing) }) }

// take counts one more stream of a token. It returns false if the token has too many.
func (s *Streams) take(o Owner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[o] >= maxStreams {
		return false
	}
	s.open[o]++
	return true
}

// Open returns the number of open streams.
func (s *Streams) Open() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.open {
		n += open
	}
	return n
}

func (s *Streams) release(o Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[o]--; s.open[o] == 0 {
		delete(s.open, o)
	}
}

// Event is one server-sent event. Its data is sent as JSON.
type Event struct {
	ID   string // empty if a reader cannot continue behind it
	Kind string // empty for a message
	Data any
}

// Listener is the authenticated caller who reads a stream.
type Listener interface {
	// Owner returns the token of the caller.
	Owner() Owner
	// IsAdmitted reports whether the token is still configured with the same rights.
	IsAdmitted() bool
}

// Source is the end of a stream in the store.
type Source struct {
	// Changed gets a value after the store may have more.
	Changed <-chan struct{}
	// Next returns the events behind those that it has returned, at most a page. last means
	// that no more will come.
	Next func(ctx context.Context) (events []Event, last bool, err error)
	// May returns an error if the caller may not read the source any more; nil for one that decides
	// about each event.
	May func(ctx context.Context) error
}

// Follow responds with the events of a source as they come, until the last one, the end of the
// request, or the end of the server. If a reload removes or changes the token, the stream ends
// before its next event, or within a heartbeat. Each event is read from the store, so a reader that comes
// back behind an event misses none and gets none twice.
func (s *Streams) Follow(w http.ResponseWriter, r *http.Request, to Listener, from Source) error {
	owner := to.Owner()
	if !s.take(owner) {
		w.Header().Set("Retry-After", "10")
		return Fail(http.StatusTooManyRequests, "too-many-streams", "this token has too many streams open")
	}
	defer s.release(owner)
	out := reader{ResponseWriter: w, control: http.NewResponseController(w)}
	defer out.finish()
	_ = out.control.SetReadDeadline(time.Time{}) // the server's own limit is for the request, which has arrived
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	out.comment()                                       // the reader learns at once that the stream is open
	for out.err == nil && r.Method != http.MethodHead { // a HEAD asks for the headers alone
		sent, last, err := s.sendNext(r.Context(), to, &out, from)
		switch {
		case last, errors.Is(err, storage.ErrNotFound):
			return nil
		case sent > 0:
			continue
		case time.Since(out.wrote) >= heartbeat:
			out.comment()
		}
		select {
		case <-from.Changed:
		case <-time.After(time.Until(out.wrote.Add(heartbeat))):
		case <-s.closing:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
	return nil
}

// sendNext reads the next events of a source and sends them. It asks for the rights after the reading, so
// that nothing is sent that was recorded after they have ended.
func (s *Streams) sendNext(ctx context.Context, to Listener, out *reader, from Source) (n int, last bool, err error) {
	end, err := s.pages.begin(ctx, to.Owner())
	if err != nil {
		return 0, true, err
	}
	defer end()
	events, last, err := from.Next(ctx)
	if !to.IsAdmitted() {
		return 0, true, nil
	}
	if from.May != nil {
		if refused := from.May(ctx); refused != nil {
			return 0, true, refused
		}
	}
	out.send(events)
	return len(events), last, err
}

// reader writes events to the reader of a stream, until the first error.
type reader struct {
	http.ResponseWriter
	control *http.ResponseController
	wrote   time.Time // the last write
	err     error
}

// finish gives the server time to write the end of the response: that of the last write may be over.
func (o *reader) finish() {
	if o.err == nil {
		_ = o.control.SetWriteDeadline(time.Now().Add(slowReader))
	}
}

func (o *reader) comment() { o.write([]byte(":\n\n")) }

func (o *reader) send(events []Event) {
	if len(events) == 0 {
		return
	}
	var b bytes.Buffer
	for _, e := range events {
		if e.ID != "" {
			b.WriteString("id: " + e.ID + "\n")
		}
		if e.Kind != "" {
			b.WriteString("event: " + e.Kind + "\n")
		}
		raw, err := event.JSON(e.Data)
		if err != nil {
			o.err = err
			return
		}
		b.WriteString("data: " + string(raw) + "\n\n")
	}
	o.write(b.Bytes())
}

// write writes within slowReader.
func (o *reader) write(raw []byte) {
	if o.err != nil {
		return
	}
	o.wrote = time.Now()
	_ = o.control.SetWriteDeadline(o.wrote.Add(slowReader)) // a writer without deadlines belongs to a test
	if _, o.err = o.Write(raw); o.err == nil {
		o.err = o.control.Flush()
	}
}
