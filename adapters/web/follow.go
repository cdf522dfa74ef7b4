package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"parley/ingest/journal"
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
	open    map[streamOwner]int
	pages   answers // of streams and of all other answers
}

// streamOwner is a token that has streams open.
type streamOwner struct{ workspace, token string }

// NewStreams returns no streams.
func NewStreams() *Streams {
	return &Streams{closing: make(chan struct{}), open: map[streamOwner]int{}}
}

// Close ends all streams, because the server stops. It does not wait for them.
func (s *Streams) Close() { s.end.Do(func() { close(s.closing) }) }

// take counts one more stream of a token. It returns false if the token has too many.
func (s *Streams) take(o streamOwner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[o] >= maxStreams {
		return false
	}
	s.open[o]++
	return true
}

func (s *Streams) release(o streamOwner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[o]--; s.open[o] == 0 {
		delete(s.open, o)
	}
}

// sent is one server-sent event. Its data is sent as JSON.
type sent struct {
	id   string // empty if a reader cannot continue behind it
	kind string // empty for a message
	data any
}

// source is the end of a stream in the store.
type source struct {
	// changed gets a value after the store may have more.
	changed <-chan struct{}
	// next returns the events behind those that it has returned, at most a page. last means
	// that no more will come.
	next func(ctx context.Context) (events []sent, last bool, err error)
	// may returns an error if the caller may not read the source any more; nil for one that decides
	// about each event.
	may func(ctx context.Context) error
}

// follow responds with the events of a source as they come, until the last one, the end of the
// request, or the end of the server. If a reload removes or changes the token, the stream ends
// before its next event, or within a heartbeat. Each event is read from the store, so a reader that comes
// back behind an event misses none and gets none twice.
func (c Call) follow(w http.ResponseWriter, r *http.Request, s source) error {
	owner := streamOwner{c.Workspace, c.Token.ID}
	if !c.Streams.take(owner) {
		w.Header().Set("Retry-After", "10")
		return fail(http.StatusTooManyRequests, "too-many-streams", "this token has too many streams open")
	}
	defer c.Streams.release(owner)
	out := reader{ResponseWriter: w, control: http.NewResponseController(w)}
	defer out.finish()
	_ = out.control.SetReadDeadline(time.Time{}) // the server's own limit is for the request, which has arrived
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	out.comment()                                                       // the reader learns at once that the stream is open
	for out.err == nil && r.Method != http.MethodHead && c.admitted() { // a HEAD asks for the headers alone
		sent, last, err := c.sendNext(r.Context(), owner, &out, s)
		switch {
		case last, errors.Is(err, journal.ErrNotFound):
			return nil
		case sent > 0:
			continue
		case time.Since(out.wrote) >= heartbeat:
			out.comment()
		}
		select {
		case <-s.changed:
		case <-time.After(time.Until(out.wrote.Add(heartbeat))):
		case <-c.Streams.closing:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
	return nil
}

// sendNext reads the next events of a source and sends them.
func (c Call) sendNext(ctx context.Context, owner streamOwner, out *reader, s source) (n int, last bool, err error) {
	end, err := c.Streams.pages.begin(ctx, owner)
	if err != nil {
		return 0, true, err
	}
	defer end()
	events, last, err := s.next(ctx)
	if s.may != nil { // after the reading: nothing is sent that was recorded after the right has ended
		if refused := s.may(ctx); refused != nil {
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

func (o *reader) send(events []sent) {
	if len(events) == 0 {
		return
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	for _, e := range events {
		if e.id != "" {
			b.WriteString("id: " + e.id + "\n")
		}
		if e.kind != "" {
			b.WriteString("event: " + e.kind + "\n")
		}
		b.WriteString("data: ")
		if err := encoder.Encode(e.data); err != nil { // it ends the line
			o.err = err
			return
		}
		b.WriteByte('\n')
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
