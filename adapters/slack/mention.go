package slack

import "strings"

// mentions says whether the encoded text mentions the user: "<@U1>" or
// "<@U1|name>". What only looks like a mention arrives escaped.
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

// mentionsAnyone says whether the encoded text mentions some user.
func mentionsAnyone(encoded string) bool { return strings.Contains(encoded, "<@") }

// mentionToken is what an agent writes to mention the user.
func mentionToken(user string) string { return "<@" + user + ">" }
