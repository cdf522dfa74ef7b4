package payload

import (
	"regexp"
	"strings"
)

// mentions reports whether the encoded text mentions the user, as "<@U1>" or
// "<@U1|name>". Slack escapes typed text that only looks like a mention.
func mentions(encoded, user string) bool {
	return user != "" && (strings.Contains(encoded, "<@"+user+">") || strings.Contains(encoded, "<@"+user+"|"))
}

// mentionsAnyone reports whether the encoded text mentions any user.
func mentionsAnyone(encoded string) bool { return strings.Contains(encoded, "<@") }

// callsSomeone reports whether an encoded text mentions a user, a user group or everybody.
// https://docs.slack.dev/messaging/formatting-message-text#advanced
var callsSomeone = regexp.MustCompile(`<@|<!(?:subteam\^|here|channel|everyone)`).MatchString

// mentionToken returns the token by which an agent mentions the user.
func mentionToken(user string) string { return "<@" + user + ">" }

// IsMention reports whether s is a token that mentions a user, such as "<@U06STGBF4Q0>".
func IsMention(s string) bool { return userMention.MatchString(s) }

var userMention = regexp.MustCompile(`^<@[UW][A-Z0-9]+>$`)
