package call

import (
	"context"
	"net/http"
	"time"

	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
)

// Info is the server's description of itself.
type Info struct {
	Version    string `json:"server_version"`
	PrivateAPI bool   `json:"private_api"`
	Helper     bool   `json:"helper_connected"`
	// Address is the account that Messages is signed in with.
	Address string `json:"detected_imessage"`

	asked time.Time
}

// Self returns our identity. A server that is not signed in has no address.
func (i Info) Self() event.Self {
	if i.Address == "" {
		return event.Self{Address: payload.MeAddress}
	}
	return event.Self{Address: i.Address}
}

// HasPrivate reports whether the server's private API works.
func (i Info) HasPrivate() bool { return i.PrivateAPI && i.Helper }

// AskInfo asks the server about itself, and remembers the answer.
func (c *Client) AskInfo(ctx context.Context) (Info, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var info Info
	if err := c.Call(ctx, http.MethodGet, "server/info", nil, nil, &info); err != nil {
		return info, err
	}
	info.asked = c.Now()
	c.info.Store(&info)
	return info, nil
}

// MayBePrivate reports whether calls use the private API, as far as is known without a call.
func (c *Client) MayBePrivate() bool {
	info := c.info.Load()
	return c.Method == MethodPrivateAPI || c.Method == MethodAuto && (info == nil || info.HasPrivate())
}

// Private reports whether calls use the private API. It asks the server if the last answer is older
// than two polls, because another node may be the one that polls.
func (c *Client) Private(ctx context.Context) (bool, error) {
	if c.Method != MethodAuto {
		return c.Method == MethodPrivateAPI, nil
	}
	if info := c.info.Load(); info != nil && c.Now().Sub(info.asked) <= 2*c.poll {
		return info.HasPrivate(), nil
	}
	info, err := c.AskInfo(ctx)
	return info.HasPrivate(), err
}
