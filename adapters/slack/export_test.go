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

// SocketTimes are how long things of Socket Mode may take; zero is as it was.
type SocketTimes struct {
	Hello, Ping, Silence, Slot, Lead, Drain, Young, Pace, BackMin, BackMax, Crowded, Patience time.Duration
}

// SetSocketTimes changes how long things of Socket Mode may take.
func (a *Adapter) SetSocketTimes(t SocketTimes) {
	of := &a.times
	for to, d := range map[*time.Duration]time.Duration{
		&of.hello: t.Hello, &of.ping: t.Ping, &of.silence: t.Silence, &of.slot: t.Slot, &of.lead: t.Lead, &of.drain: t.Drain, &of.young: t.Young,
		&of.pace: t.Pace, &of.backMin: t.BackMin, &of.backMax: t.BackMax, &of.crowded: t.Crowded, &of.patience: t.Patience,
	} {
		if d != 0 {
			*to = d
		}
	}
}

// SentOn is what the client for files does on its way through redirects: whether
// the last request of it shows the token, or why there is none.
func (a *Adapter) SentOn(way ...string) (token bool, err error) {
	var via []*http.Request
	for _, address := range way {
		request, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			return false, err
		}
		request.Header.Set("Authorization", "Bearer x") // as the client copies it
		if len(via) > 0 {
			if err := a.files.CheckRedirect(request, via); err != nil {
				return false, err
			}
		}
		via = append(via, request)
	}
	return via[len(via)-1].Header.Get("Authorization") != "", nil
}

// SetDial changes how connections to Slack are made.
func (a *Adapter) SetDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	a.web.client.Transport.(*http.Transport).DialContext = dial
}

// Pace is the pace of one method.
type Pace struct{ pace }

// Wait returns when the next call may be made.
func (p *Pace) Wait(ctx context.Context, urgent <-chan struct{}) error { return p.wait(ctx, urgent) }

// Needed are all scopes that something needs, and all events.
func Needed() (names, events []string) {
	for _, s := range scopes {
		names, events = append(names, s.name), append(events, s.events...)
	}
	return names, events
}

// GrantedScopes reads the header's values.
func GrantedScopes(values []string) ([]string, bool) {
	header := http.Header{}
	for _, v := range values {
		header.Add("X-OAuth-Scopes", v)
	}
	return grantedScopes(header)
}
