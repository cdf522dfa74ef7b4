package slack

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/gorilla/websocket"
)

// openSocket requests an address and connects to it. No error contains the address,
// because it contains a ticket.
// https://docs.slack.dev/apis/events-api/using-socket-mode
func (a *Adapter) openSocket(ctx context.Context) (*websocket.Conn, error) {
	address, err := a.askAddress(ctx)
	if err != nil {
		return nil, err
	}
	dialer := websocket.Dialer{Proxy: a.transport.Proxy, NetDialContext: a.transport.DialContext, HandshakeTimeout: a.times.open}
	conn, response, err := dialer.DialContext(ctx, address, nil)
	if err != nil {
		if response != nil {
			return nil, fmt.Errorf("open a socket: slack answered %s", response.Status)
		}
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	return conn, nil
}

// askAddress calls apps.connections.open.
func (a *Adapter) askAddress(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	_, address, err := a.api.StartSocketModeContext(ctx)
	switch {
	case refusedCode(err) == "too_many_websockets":
		return "", errTooMany
	case err != nil:
		return "", markRefused("app_token", fmt.Errorf("ask slack for a socket: %w", err))
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || !(u.Scheme == "wss" || u.Scheme == "ws" && a.base.Scheme == "http") {
		return "", errors.New("ask slack for a socket: the answer has no websocket address")
	}
	return address, nil
}
