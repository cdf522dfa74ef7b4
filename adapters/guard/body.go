package guard

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// firstBuffer is the first buffer of a body without a declared length, in bytes.
const firstBuffer = 4 << 10

var (
	errTooLarge = errors.New("the body is too large")
	errCrowded  = errors.New("the body was closed to make room for others")
)

// Limit bounds one body.
type Limit struct {
	Bytes int
	Time  time.Duration // of its arrival
}

// Body returns the body of a request whose caller is authenticated.
func (g *Guard) Body(w http.ResponseWriter, r *http.Request, limit Limit) ([]byte, *Refusal) {
	if refusal := limit.begin(w, r); refusal != nil {
		return nil, refusal
	}
	raw, err := g.read(r, limit.Bytes, func(int) bool { return true })
	return raw, refused(w, err)
}

// Unverified returns the body of a request that only the body itself can authenticate. All
// such bodies of the process share 32 MiB. If there is no room for a new one, the body that
// has been incomplete longest is closed. verify returns the reason why the caller is not
// authenticated, or "".
func (g *Guard) Unverified(w http.ResponseWriter, r *http.Request, limit Limit, verify func(body []byte) (reason string)) ([]byte, *Refusal) {
	if refusal := limit.begin(w, r); refusal != nil {
		return nil, refusal
	}
	b := &body{bodies: &g.bodies, end: func() { _ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) }}
	defer b.release()
	raw, err := g.read(r, limit.Bytes, b.reserve)
	if !b.complete() {
		err = errCrowded
	}
	if err != nil {
		return nil, refused(w, err)
	}
	if reason := verify(raw); reason != "" {
		return nil, g.Unauthorized(w, r, reason)
	}
	g.Admit(r)
	return raw, nil
}

// begin refuses a body whose declared length is too large, and starts the time limit.
func (l Limit) begin(w http.ResponseWriter, r *http.Request) *Refusal {
	if r.ContentLength > int64(l.Bytes) {
		return refused(w, errTooLarge)
	}
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(l.Time)); err != nil {
		return &Refusal{http.StatusInternalServerError, "no-deadline"}
	}
	return nil
}

// read reads a body into one buffer. It calls reserve before it allocates more bytes, and ends
// if that returns false. After the last byte the server itself lifts the time limit.
func (g *Guard) read(r *http.Request, limit int, reserve func(n int) bool) ([]byte, error) {
	conn := connOf(r)
	g.connections.move(conn, &g.connections.waiting)
	defer g.connections.move(conn, &g.connections.serving)
	if r.ContentLength >= 0 {
		if !reserve(int(r.ContentLength)) {
			return nil, errCrowded
		}
		raw := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, raw)
		return raw, err
	}
	for raw := []byte(nil); ; {
		if len(raw) == cap(raw) {
			size := min(max(firstBuffer, 2*cap(raw)), limit+1)
			if !reserve(size - cap(raw)) {
				return nil, errCrowded
			}
			raw = append(make([]byte, 0, size), raw...)
		}
		n, err := r.Body.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		switch {
		case len(raw) > limit:
			return nil, errTooLarge
		case errors.Is(err, io.EOF):
			return raw, nil
		case err != nil:
			return nil, err
		}
	}
}

// refused returns the refusal of a body that could not be read; nil if there is no error. The
// connection ends with the answer, because the rest of the body may still come.
func refused(w http.ResponseWriter, err error) *Refusal {
	if err == nil {
		return nil
	}
	w.Header().Set("Connection", "close")
	switch {
	case errors.Is(err, errTooLarge):
		return &Refusal{http.StatusRequestEntityTooLarge, "too-large"}
	case errors.Is(err, errCrowded):
		return &Refusal{http.StatusServiceUnavailable, "crowded-out"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Refusal{http.StatusRequestTimeout, "slow-body"}
	}
	return &Refusal{http.StatusBadRequest, "broken-body"}
}
