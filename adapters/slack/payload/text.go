package payload

import (
	"regexp"
	"strings"

	"parley/ingest/event"
)

// decode converts the text of a payload to the text that its author typed. Slack
// escapes &, < and > in typed text, so Slack itself wrote every "<…>". A link becomes
// the text that the author typed for it, and a date becomes its fallback. A mention of
// a user, channel or group stays a token, because an agent must be able to copy it.
// decode trims nothing.
//
// Decode a text only once, and look for mentions before decoding: a typed "<@U1>"
// mentions nobody, but decodes to the same text as a mention.
func decode(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	end := 0
	for _, token := range tokens.FindAllStringIndex(text, -1) {
		out.WriteString(unescape(text[end:token[0]]))
		out.WriteString(decodeToken(text[token[0]+1 : token[1]-1]))
		end = token[1]
	}
	out.WriteString(unescape(text[end:]))
	return event.Text(out.String())
}

// TopicOf returns a channel's topic as a person has typed it.
func TopicOf(encoded string) string { return decode(encoded) }

// tokens matches what Slack itself wrote.
var tokens = regexp.MustCompile(`<[^<>]*>`)

// decodeToken decodes the text between < and >.
func decodeToken(token string) string {
	target, label, labelled := strings.Cut(token, "|")
	switch {
	case strings.HasPrefix(target, "!date^") && label != "":
		return unescape(label)
	case !isLink(target):
		return "<" + token + ">"
	case !labelled || label == "":
		return unescape(target)
	case isTyped(target, label):
		return unescape(label)
	default:
		return "[" + unescape(label) + "](" + unescape(target) + ")"
	}
}

func isLink(target string) bool {
	return strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") || strings.HasPrefix(target, "tel:")
}

// isTyped reports whether a link's label is the address that the author typed, before
// Slack added a scheme. A telephone number keeps its label, because Slack drops the
// punctuation from the target.
func isTyped(target, label string) bool {
	return strings.HasPrefix(target, "tel:") || strings.EqualFold(decoration.ReplaceAllString(target, ""), decoration.ReplaceAllString(label, ""))
}

// decoration matches the scheme and the last slash of an address.
var decoration = regexp.MustCompile(`^(?:https?://|mailto:)|/$`)

// unescape decodes the three escapes that Slack makes, and no others.
func unescape(s string) string { return escapes.Replace(s) }

var escapes = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

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
