package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"

	"parley/adapters"
)

// openSocket requests an address and connects to it. No error contains the address,
// because it contains a ticket.
// https://docs.slack.dev/apis/events-api/using-socket-mode
func (a *Adapter) openSocket(ctx context.Context) (*websocket.Conn, error) {
	address, err := a.askAddress(ctx)
	if err != nil {
		return nil, err
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, NetDialContext: dial, HandshakeTimeout: a.times.open}
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
	if err != nil {
		return "", refusedAppToken(fmt.Errorf("ask slack for a socket: %w", err))
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || !(u.Scheme == "wss" || u.Scheme == "ws" && a.base.Scheme == "http") {
		return "", errors.New("ask slack for a socket: the answer has no websocket address")
	}
	return address, nil
}

// refusedAppToken marks an error of the app token that only the operator can fix.
// https://docs.slack.dev/reference/methods/apps.connections.open#errors
func refusedAppToken(err error) error {
	var answer slack.SlackErrorResponse
	if !errors.As(err, &answer) {
		return err
	}
	hint := ""
	switch answer.Err {
	case "too_many_websockets":
		return errTooMany
	case "invalid_auth", "not_authed", "not_allowed_token_type":
		hint = "check app_token: it is an App-Level Token, from the app's Basic Information, which begins with xapp-"
	case "token_revoked", "token_expired", "account_inactive":
		hint = "generate an App-Level Token with the scope connections:write in the app's Basic Information, and set app_token to it"
	case "missing_scope":
		hint = "app_token lacks the scope connections:write: generate an App-Level Token that has it, in the app's Basic Information"
	default:
		return err
	}
	return &adapters.RefusedError{Err: err, Hint: hint}
}

// errLinkDisabled returns the error for an app that may have no sockets.
func errLinkDisabled() error {
	return &adapters.RefusedError{
		Err:  errors.New("slack closed the socket: link_disabled"),
		Hint: "Socket Mode is switched off: turn it on under Socket Mode in the app's settings, or set mode: http",
	}
}
