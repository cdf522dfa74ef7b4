package payload

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley/adapters"
)

// IsID reports whether s can be a Slack id. It allows more than Slack's ids, but no
// character that separates the parts of a key.
func IsID(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// IsChannel reports whether s can be the id of a channel, a direct message or a group conversation.
// No channel's name begins so, because names are in lower case.
func IsChannel(s string) bool { return IsID(s) && strings.ContainsAny(s[:1], "CDG") }

// IsTeam reports whether s can be the id of a team or of an organisation.
func IsTeam(s string) bool {
	return IsID(s) && strings.ContainsAny(s[:1], "TE") && strings.ToUpper(s) == s
}

// IsApp reports whether s can be the id of an app.
func IsApp(s string) bool { return IsID(s) && s[0] == 'A' && strings.ToUpper(s) == s }

// IsGroup reports whether s can be the id of a user group.
func IsGroup(s string) bool { return IsID(s) && s[0] == 'S' && strings.ToUpper(s) == s }

// IsUser reports whether s can be the id of a user or a bot.
func IsUser(s string) bool { return looksLikeID.MatchString(s) }

// looksLikeID matches possible ids of a user or a bot.
var looksLikeID = regexp.MustCompile(`^[UWB][0-9A-Z]+$`)

// IsTimestamp reports whether s has the form of a Slack ts, such as
// "1700000000.000100".
func IsTimestamp(s string) bool {
	seconds, fraction, ok := strings.Cut(s, ".")
	return ok && isDigits(seconds, 12) && isDigits(fraction, 9)
}

func isDigits(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}

// SentAt returns the time of a ts. The fraction of a ts also makes it unique.
func SentAt(ts string) time.Time {
	whole, fraction, _ := strings.Cut(ts, ".")
	seconds, _ := strconv.ParseInt(whole, 10, 64) // IsTimestamp has checked both parts
	nanos, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	return time.Unix(seconds, nanos).UTC()
}

// Timestamp formats a time as a Slack ts.
func Timestamp(t time.Time) string { return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000) }

// SameID compares two ids. An empty id equals no other.
func SameID(a, b string) bool { return a != "" && a == b }

// MessageID returns a message's external id.
func MessageID(channel, ts string) string { return channel + "/" + ts }

// SplitID splits a message's external id into its channel and ts. An id in another form
// is a permanent failure.
func SplitID(id string) (channel, ts string, err error) {
	channel, ts, _ = strings.Cut(id, "/")
	if !IsID(channel) || !IsTimestamp(ts) {
		return "", "", adapters.Permanently(fmt.Sprintf("%q is not a slack message", id))
	}
	return channel, ts, nil
}

// MessageOf reads the permalink of a message, such as
// https://acme.slack.com/archives/C06RY3YBSLE/p1700000000000100, or its external id. It returns false
// for another text.
// https://docs.slack.dev/reference/methods/chat.getPermalink
func MessageOf(ref string) (m adapters.MessageRef, ok bool) {
	id := ref
	if link, ok := adapters.ParseAddress(ref); ok {
		parts := strings.Split(strings.Trim(link.Path, "/"), "/")
		isSlack := link.Scheme == "https" && strings.HasSuffix(link.Hostname(), ".slack.com") || adapters.IsNear(link.Hostname()) // a fake's
		if len(parts) != 3 || parts[0] != "archives" || !isSlack {
			return m, false
		}
		digits, isLink := strings.CutPrefix(parts[2], "p")
		if !isLink || len(digits) < 7 {
			return m, false
		}
		at := len(digits) - 6 // the fraction has six digits
		id = MessageID(parts[1], digits[:at]+"."+digits[at:])
	}
	channel, ts, err := SplitID(id)
	if err != nil || !IsChannel(channel) {
		return m, false
	}
	return adapters.MessageRef{ID: id, Channel: channel, SentAt: SentAt(ts)}, true
}
