package httpcall

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// timedConn checks the clock directly before each write. After a pause of the process,
// a request may continue although its context has ended, because no timer has fired
// yet. By then another node may have asked the platform for the post and sent it again.
type timedConn struct {
	net.Conn
	until atomic.Pointer[time.Time] // nil means no limit
}

// dial connects with the timeouts of http.DefaultTransport.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	c, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &timedConn{Conn: c}, nil
}

// writeBy sets the deadline of the following writes to a connection. A zero deadline
// means none.
func writeBy(c net.Conn, deadline time.Time) {
	if wrapped, ok := c.(*tls.Conn); ok {
		c = wrapped.NetConn()
	}
	if timed, ok := c.(*timedConn); ok {
		var until *time.Time
		if !deadline.IsZero() {
			until = &deadline
		}
		timed.until.Store(until)
	}
}

var errTooLate = errors.New("the deadline passed before the request was written")

// Write writes unless the deadline has passed.
func (c *timedConn) Write(p []byte) (int, error) {
	if until := c.until.Load(); until != nil && !time.Now().Before(*until) {
		return 0, errTooLate
	}
	return c.Conn.Write(p)
}
