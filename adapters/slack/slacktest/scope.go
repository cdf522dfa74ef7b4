package slacktest

import (
	"net/url"
	"slices"
	"strings"
)

// AllScopes returns the bot's scopes that Parley needs. They are the default of
// Options.Scopes.
// https://docs.slack.dev/reference/scopes
func AllScopes() []string {
	return []string{"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands",
		"files:read", "files:write", "groups:history", "groups:read", "im:history", "im:read", "im:write", "mpim:history",
		"mpim:read", "reactions:read", "reactions:write", "team:read", "users:read"}
}

// granted reports whether the bot has the scope.
func (s *Server) granted(scope string) bool { return slices.Contains(s.options.Scopes, scope) }

// lacks returns a scope that the call needs and the bot lacks, or an empty string.
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

// kindsAskedFor returns the kind of the channel in the call, or else the kinds in types.
func (s *Server) kindsAskedFor(form url.Values) []Kind {
	if id := form.Get("channel"); id != "" {
		return []Kind{s.kindOf(id)}
	}
	kinds, _ := readTypes(form)
	return kinds
}
