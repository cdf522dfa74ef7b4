package payload

import (
	"net/url"
	"strings"

	"parley/adapters"
)

// MessageOf reads the permalink of a message, such as
// https://acme.slack.com/archives/C06RY3YBSLE/p1700000000000100, or its external id. It returns false
// for another text.
// https://docs.slack.dev/reference/methods/chat.getPermalink
func MessageOf(ref string) (m adapters.MessageRef, ok bool) {
	id := ref
	if link, err := url.Parse(ref); err == nil && link.Scheme == "https" {
		parts := strings.Split(strings.Trim(link.Path, "/"), "/")
		if len(parts) != 3 || parts[0] != "archives" || !strings.HasSuffix(link.Hostname(), ".slack.com") {
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
