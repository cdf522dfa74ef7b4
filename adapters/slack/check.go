package slack

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"parley/adapters"
)

var _ adapters.Checker = (*Adapter)(nil)

// Check calls auth.test for our identity and the granted scopes. In Socket Mode it also
// requests a socket address, without opening the socket.
func (a *Adapter) Check(ctx context.Context, wants adapters.Wants) (found []adapters.Finding, err error) {
	_, header, err := a.Client.AuthTest(ctx)
	var refused *adapters.RefusedError
	switch {
	case errors.As(err, &refused):
		found = append(found, adapters.Finding{Key: "bot_token", Words: err.Error(), Fault: true})
	case err != nil:
		return nil, err
	default:
		if granted, known := grantedScopes(header); known {
			for _, l := range missingScopes(granted, a.config, wants) {
				found = append(found, adapters.Finding{Key: "bot_token", Words: l.String(), Fault: l.isFault()})
			}
		}
	}
	if a.config.Mode != ModeSocket {
		return found, nil
	}
	if _, err = a.Live.AskAddress(ctx); errors.As(err, &refused) {
		return append(found, adapters.Finding{Key: "app_token", Words: err.Error(), Fault: true}), nil
	}
	return found, err
}

// logMissingScopes logs the app's missing scopes, once.
func (a *Adapter) logMissingScopes(granted []string, wants adapters.Wants, log *slog.Logger) {
	all := missingScopes(granted, a.config, wants)
	if len(all) == 0 || a.scopesLogged.Swap(true) {
		return
	}
	lines := make([]string, len(all))
	for i, l := range all {
		lines[i] = l.String()
	}
	log.Warn("the slack app lacks scopes", "missing", strings.Join(lines, "; "))
}
