package slack

import "strings"

// mentions reports whether the encoded text mentions the user, as "<@U1>" or
// "<@U1|name>". Slack escapes typed text that only looks like a mention.
func mentions(encoded, user string) bool {
	if user == "" {
		return false
	}
	for rest := encoded; ; {
		_, after, found := strings.Cut(rest, "<@"+user)
		if !found {
			return false
		}
		if strings.HasPrefix(after, ">") || (strings.HasPrefix(after, "|") && strings.Contains(after, ">")) {
			return true
		}
		rest = after
	}
}

// mentionsAnyone reports whether the encoded text mentions any user.
func mentionsAnyone(encoded string) bool { return strings.Contains(encoded, "<@") }

// mentionToken returns the token by which an agent mentions the user.
func mentionToken(user string) string { return "<@" + user + ">" }
