package slacktest

import (
	"net/url"
	"slices"
	"strings"
)

// AllScopes are the bot's scopes that Parley wants, and those that a Server's
// Options grant which name none.
// https://docs.slack.dev/reference/scopes
func AllScopes() []string {
	return []string{"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands",
		"files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write", "mpim:history",
		"mpim:read", "reactions:read", "reactions:write", "team:read", "users:read"}
}

// granted says that the bot has the scope.
func (s *Server) granted(scope string) bool { return slices.Contains(s.options.Scopes, scope) }

// lacks returns the scope that the call needs and the bot has not; empty for none.
func (s *Server) lacks(m method, form url.Values) string {
	if rest, byKind := strings.CutPrefix(m.scope, "*"); byKind {
		for _, kind := range s.kindsAskedFor(form) {
			if scope := kind.family() + rest; !s.granted(scope) {
				return scope
			}
		}
		return ""
	}
	first, more, _ := strings.Cut(m.scope, "|")
	if first == "" || s.granted(first) || more != "" && s.granted(more) {
		return ""
	}
	return first
}

// kindsAskedFor are the channel's where the call names one, else those in types.
func (s *Server) kindsAskedFor(form url.Values) []Kind {
	if id := form.Get("channel"); id != "" {
		return []Kind{s.kindOf(id)}
	}
	kinds, _ := readTypes(form)
	return kinds
}
