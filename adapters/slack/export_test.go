package slack

import (
	"context"
	"net"
	"net/http"
	"time"
)

// SetClock makes the hook judge signatures by another time.
func (a *Adapter) SetClock(now func() time.Time) { a.now = now }

// SetBodyTimeout changes how long a body may take.
func (a *Adapter) SetBodyTimeout(d time.Duration) { a.bodyTimeout = d }

// SetDial changes how connections to Slack are made.
func (a *Adapter) SetDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	a.web.client.Transport.(*http.Transport).DialContext = dial
}
