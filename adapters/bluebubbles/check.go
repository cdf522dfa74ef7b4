package bluebubbles

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"parley/adapters"
	"parley/adapters/bluebubbles/call"
	"parley/adapters/bluebubbles/live"
)

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
	note(wants.Everybody, false, "url", live.EverybodyWords)
	note(isOwnMachine(wants.Hook) && !isOwnMachine(a.config.URL), false, "url",
		"the server cannot call our hook, whose address is one of this machine only: set public_url in parley.yaml to the address at which the server reaches Parley")
	info, err := a.client.AskInfo(ctx)
	if refused, ok := errors.AsType[*adapters.RefusedError](err); ok {
		note(true, true, "password", refused.Error())
		return found, nil
	}
	if err != nil {
		return found, err
	}
	hasPrivate := info.HasPrivate()
	note(older(info.Version, minVersion), false, "url", fmt.Sprintf("the server has version %s; this version of Parley was made for %s and later", info.Version, minVersion))
	note(!hasPrivate && a.config.Method == call.MethodPrivateAPI, true, "method", "is private-api, but the server's private API is not connected: enable it there, or set method: auto")
	note(!hasPrivate && a.config.Method == call.MethodAuto, false, "method", "the server has no private API, so there are no typing signs, no read receipts and no replies to a message")
	note(info.Address == "", false, "url", "Messages is not signed in on the server: sign in, or nothing is sent and received")
	registered, err := a.IsRegistered(ctx, wants.Hook)
	if err != nil {
		return found, err
	}
	if !registered && wants.Hook != "" {
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
