package operator

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// direct passes requests to a handler in this process.
type direct struct{ http.Handler }

// errAborted is the error of an answer whose handler gave up.
var errAborted = errors.New("the answer ended too early")

// RoundTrip implements http.RoundTripper. The body of the answer is read while the handler writes it.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	body, out := io.Pipe()
	w := &piped{header: http.Header{}, out: out, begun: make(chan struct{})}
	go func() {
		defer func() {
			if recover() != nil { // as in a server, it ends the answer
				_ = out.CloseWithError(errAborted)
			}
			w.WriteHeader(http.StatusOK)
			_ = out.Close()
		}()
		d.ServeHTTP(w, r)
	}()
	<-w.begun
	return &http.Response{StatusCode: w.status, Header: w.header, Body: body, ContentLength: -1, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r}, nil
}

// piped is the writer of an answer that is read in this process.
type piped struct {
	header http.Header
	out    *io.PipeWriter
	once   sync.Once
	status int           // is set before begun is closed
	begun  chan struct{} // is closed when the header is complete
}

// Header implements http.ResponseWriter.
func (w *piped) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *piped) WriteHeader(status int) {
	w.once.Do(func() {
		w.status = status
		close(w.begun)
	})
}

// Write implements http.ResponseWriter.
func (w *piped) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(p)
}

// SetReadDeadline does nothing: the request is in memory.
func (w *piped) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing: the reader is in this process.
func (w *piped) SetWriteDeadline(time.Time) error { return nil }
