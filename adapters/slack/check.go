package slack

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"parley/adapters"
)

var _ adapters.Checker = (*Adapter)(nil)

// Check asks auth.test who we are and what we may do and, in Socket Mode, for an
// address of a socket, which is not opened.
func (a *Adapter) Check(ctx context.Context, wants adapters.Wants) (found []adapters.Finding, err error) {
	_, header, err := a.authTest(ctx)
	var refused *adapters.RefusedError
	switch {
	case errors.As(err, &refused):
		found = append(found, adapters.Finding{Key: "bot_token", Words: err.Error(), Fault: true})
	case err != nil:
		return nil, err
	default:
		if granted, told := grantedScopes(header); told {
			for _, l := range lacking(granted, a.config, wants) {
				found = append(found, adapters.Finding{Key: "bot_token", Words: l.String(), Fault: l.isFault()})
			}
		}
	}
	if a.config.Mode != ModeSocket {
		return found, nil
	}
	if _, err = a.askAddress(ctx); errors.As(err, &refused) {
		return append(found, adapters.Finding{Key: "app_token", Words: err.Error(), Fault: true}), nil
	}
	return found, err
}

// tell logs, once, what the app lacks.
func (a *Adapter) tell(granted []string, wants adapters.Wants, log *slog.Logger) {
	all := lacking(granted, a.config, wants)
	if len(all) == 0 || a.told.Swap(true) {
		return
	}
	words := make([]string, len(all))
	for i, l := range all {
		words[i] = l.String()
	}
	log.Warn("the slack app lacks scopes", "lacks", strings.Join(words, "; "))
}
