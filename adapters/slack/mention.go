package slack

import (
	"slices"
	"strings"
)

// mentions reports whether the encoded text mentions the user, as "<@U1>" or
// "<@U1|name>". Slack escapes typed text that only looks like a mention.
func mentions(encoded, user string) bool {
	return user != "" && (strings.Contains(encoded, "<@"+user+">") || strings.Contains(encoded, "<@"+user+"|"))
}

// mentionsAnyone reports whether the encoded text mentions any user.
func mentionsAnyone(encoded string) bool { return strings.Contains(encoded, "<@") }

// callsSomeone reports whether the encoded text mentions a user, a user group or everybody.
// https://docs.slack.dev/messaging/formatting-message-text#advanced
func callsSomeone(encoded string) bool {
	return mentionsAnyone(encoded) || slices.ContainsFunc([]string{"<!subteam^", "<!here", "<!channel", "<!everyone"}, func(token string) bool {
		return strings.Contains(encoded, token)
	})
}

// mentionToken returns the token by which an agent mentions the user.
func mentionToken(user string) string { return "<@" + user + ">" }

// isUserMention reports whether a token mentions a user, such as "<@U06STGBF4Q0>".
func isUserMention(token string) bool {
	id, opened := strings.CutPrefix(token, "<@")
	id, closed := strings.CutSuffix(id, ">")
	return opened && closed && len(id) > 1 && (id[0] == 'U' || id[0] == 'W') && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}
