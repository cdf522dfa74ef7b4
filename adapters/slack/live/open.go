package live

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/gorilla/websocket"

	"parley/adapters/slack/call"
)

// openSocket requests an address and connects to it. No error contains the address,
// because it contains a ticket.
// https://docs.slack.dev/apis/events-api/using-socket-mode
func (rc *Receiver) openSocket(ctx context.Context) (*websocket.Conn, error) {
	address, err := rc.AskAddress(ctx)
	if err != nil {
		return nil, err
	}
	dialer := websocket.Dialer{Proxy: rc.client.Transport.Proxy, NetDialContext: rc.client.Transport.DialContext, HandshakeTimeout: rc.Times.Open}
	conn, response, err := dialer.DialContext(ctx, address, nil)
	if err != nil {
		if response != nil {
			return nil, fmt.Errorf("open a socket: slack answered %s", response.Status)
		}
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	return conn, nil
}

// AskAddress calls apps.connections.open, and returns the address of a socket. If Slack refuses the app
// token, the error is a *adapters.RefusedError.
func (rc *Receiver) AskAddress(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, rc.client.Timeout)
	defer cancel()
	_, address, err := rc.client.API.StartSocketModeContext(ctx)
	switch {
	case call.Code(err) == "too_many_websockets":
		return "", errTooMany
	case err != nil:
		return "", call.MarkRefused("app_token", fmt.Errorf("ask slack for a socket: %w", err))
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || !(u.Scheme == "wss" || u.Scheme == "ws" && rc.client.Base.Scheme == "http") {
		return "", errors.New("ask slack for a socket: the answer has no websocket address")
	}
	return address, nil
}
