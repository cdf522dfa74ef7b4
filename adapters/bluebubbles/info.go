package bluebubbles

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/payload"
	"parley/ingest/event"
)

// serverInfo is the server's description of itself.
type serverInfo struct {
	Version    string `json:"server_version"`
	PrivateAPI bool   `json:"private_api"`
	Helper     bool   `json:"helper_connected"`
	// Address is the account that Messages is signed in with.
	Address string `json:"detected_imessage"`

	asked time.Time
}

// self returns our identity. A server that is not signed in has no address.
func (i serverInfo) self() event.Self {
	if i.Address == "" {
		return event.Self{Address: payload.MeAddress}
	}
	return event.Self{Address: i.Address}
}

// askInfo asks the server about itself, and remembers the answer.
func (a *Adapter) askInfo(ctx context.Context) (serverInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	var info serverInfo
	if err := a.call(ctx, http.MethodGet, "server/info", nil, nil, &info); err != nil {
		return info, err
	}
	info.asked = a.now()
	a.info.Store(&info)
	return info, nil
}

// private reports whether calls use the private API. It asks the server if the last answer is older
// than two polls, because another node may be the one that polls.
func (a *Adapter) private(ctx context.Context) (bool, error) {
	if a.config.Method != MethodAuto {
		return a.config.Method == MethodPrivateAPI, nil
	}
	if info := a.info.Load(); info != nil && a.now().Sub(info.asked) <= 2*a.config.Poll {
		return info.PrivateAPI && info.Helper, nil
	}
	info, err := a.askInfo(ctx)
	return info.PrivateAPI && info.Helper, err
}

var _ adapters.Checker = (*Adapter)(nil)

// minVersion is the oldest version of the server whose calls this adapter knows.
const minVersion = "1.9.0"

// Check asks the server for its abilities and its webhooks.
func (a *Adapter) Check(ctx context.Context, wants adapters.Wants) (found []adapters.Finding, err error) {
	note := func(bad, fault bool, key, words string) {
		if bad {
			found = append(found, adapters.Finding{Key: key, Words: words, Fault: fault})
		}
	}
	note(wants.Everybody, false, "url", everybodyWords)
	note(isOwnMachine(wants.Hook) && !isOwnMachine(a.config.URL), false, "url",
		"the server cannot call our hook, whose address is one of this machine only: set public_url in parley.yaml to the address at which the server reaches Parley")
	info, err := a.askInfo(ctx)
	if refused, ok := errors.AsType[*adapters.RefusedError](err); ok {
		note(true, true, "password", refused.Error())
		return found, nil
	}
	if err != nil {
		return found, err
	}
	hasPrivate := info.PrivateAPI && info.Helper
	note(older(info.Version, minVersion), false, "url", fmt.Sprintf("the server has version %s; this version of Parley was made for %s and later", info.Version, minVersion))
	note(!hasPrivate && a.config.Method == MethodPrivateAPI, true, "method", "is private-api, but the server's private API is not connected: enable it there, or set method: auto")
	note(!hasPrivate && a.config.Method == MethodAuto, false, "method", "the server has no private API, so there are no typing signs, no read receipts and no replies to a message")
	note(info.Address == "", false, "url", "Messages is not signed in on the server: sign in, or nothing is sent and received")
	list, err := a.webhooks(ctx)
	if err != nil {
		return found, err
	}
	_, missing := a.stale(list, wants.Hook)
	if missing && wants.Hook != "" {
		found = append(found, adapters.Finding{Key: "webhook_secret", Note: true, Words: "the webhook is not registered at the server yet; a running daemon registers it"})
	}
	return found, nil
}

// isOwnMachine reports whether an address means the machine that uses it.
func isOwnMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip.IsLoopback() || ip.IsUnspecified()
}

// everybodyWords warn about a workspace that admits every sender.
const everybodyWords = "everybody who writes to this Apple ID is answered: list the addresses of the people whom you know in policy.allow_users"

// older reports whether a version is older than another one. A text that is no version is not
// older.
func older(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	for i := range min(len(a), len(b)) {
		x, err := strconv.Atoi(a[i])
		y, _ := strconv.Atoi(b[i])
		if err != nil || x != y {
			return err == nil && x < y
		}
	}
	return false
}
