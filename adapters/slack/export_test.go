package slack

import (
	"context"
	"net"
	"net/http"
	"time"
)

// SetClock sets the clock for signatures and remembered refusals.
func (a *Adapter) SetClock(now func() time.Time) { a.now = now }

// SocketTimes are the time limits of Socket Mode. A zero keeps the default.
type SocketTimes struct {
	Hello, Ping, Silence, OrderWait, Drain, MinAge, BackoffMin, BackoffMax, DownAfter time.Duration
}

// SetSocketTimes sets time limits of Socket Mode.
func (a *Adapter) SetSocketTimes(t SocketTimes) {
	of := &a.times
	for to, d := range map[*time.Duration]time.Duration{
		&of.hello: t.Hello, &of.ping: t.Ping, &of.silence: t.Silence, &of.orderWait: t.OrderWait, &of.drain: t.Drain,
		&of.minAge: t.MinAge, &of.backoffMin: t.BackoffMin, &of.backoffMax: t.BackoffMax, &of.downAfter: t.DownAfter,
	} {
		if d != 0 {
			*to = d
		}
	}
}

// FollowRedirects passes a chain of addresses to the client for files. It reports
// whether the last request carries the token, and returns an error if the client
// refuses a redirect.
func (a *Adapter) FollowRedirects(chain ...string) (token bool, err error) {
	var via []*http.Request
	for _, address := range chain {
		request, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			return false, err
		}
		request.Header.Set("Authorization", "Bearer x") // as http.Client copies it
		if len(via) > 0 {
			if err := a.files.CheckRedirect(request, via); err != nil {
				return false, err
			}
		}
		via = append(via, request)
	}
	return via[len(via)-1].Header.Get("Authorization") != "", nil
}

// SetDial sets the function that connects to Slack.
func (a *Adapter) SetDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	a.transport.DialContext = dial
}

// Pace is the pace of one method.
type Pace struct{ pace }

// Wait blocks until the next call is allowed.
func (p *Pace) Wait(ctx context.Context, urgent <-chan struct{}) error { return p.wait(ctx, urgent) }

// Needed returns all scopes that the adapter may need, and their events.
func Needed() (names, events []string) {
	for _, s := range scopes {
		names, events = append(names, s.name), append(events, s.events...)
	}
	return names, events
}

// GrantedScopes reads the values of the scopes header.
func GrantedScopes(values []string) ([]string, bool) {
	header := http.Header{}
	for _, v := range values {
		header.Add("X-OAuth-Scopes", v)
	}
	return grantedScopes(header)
}
