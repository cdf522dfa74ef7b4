package slack

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// timedConn looks at the clock directly before it writes. A process that stood still
// may go on with a request whose context has ended, before any timer has told it so;
// others have asked Slack by then, and sent again.
type timedConn struct {
	net.Conn
	until atomic.Pointer[time.Time] // nil: for as long as it likes
}

// dial connects as http.DefaultTransport does.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	c, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &timedConn{Conn: c}, nil
}

// writeBy bounds what is written to a connection from now on; zero is no bound.
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

var errTooLate = errors.New("the call's time was over before it was written")

// Write writes, unless it is too late.
func (c *timedConn) Write(p []byte) (int, error) {
	if until := c.until.Load(); until != nil && !time.Now().Before(*until) {
		return 0, errTooLate
	}
	return c.Conn.Write(p)
}
