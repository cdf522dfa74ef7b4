package slack

import (
	"strings"

	"parley/ingest/event"
)

// decode turns the text of a payload into what was typed. Slack escapes &, <
// and > in what people type, so every "<…>" is its own: a link becomes what
// stood there before Slack made it one, a date its fallback, and a mention, a
// channel or a group stays the token that it is, since an agent must be able to
// copy it. Nothing is trimmed.
//
// It must run once over a text, and after its mentions have been found: a
// person who types "<@U1>" mentions nobody, but decodes to the same words.
func decode(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	for {
		plain, rest, found := strings.Cut(text, "<")
		out.WriteString(unescape(plain))
		if !found {
			return event.Text(out.String())
		}
		end := strings.IndexAny(rest, "<>")
		if end < 0 || rest[end] == '<' {
			out.WriteByte('<')
			text = rest
			continue
		}
		out.WriteString(decodeToken(rest[:end]))
		text = rest[end+1:]
	}
}

// decodeToken decodes what stands between < and >.
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

// isTyped says whether a link's label is the address that somebody typed, which
// Slack completed with a scheme. A telephone number keeps its label, whose
// punctuation Slack drops from the target.
func isTyped(target, label string) bool {
	return strings.HasPrefix(target, "tel:") || strings.EqualFold(bareAddress(target), bareAddress(label))
}

func bareAddress(address string) string {
	for _, scheme := range []string{"http://", "https://", "mailto:"} {
		if rest, ok := strings.CutPrefix(address, scheme); ok {
			address = rest
			break
		}
	}
	return strings.TrimSuffix(address, "/")
}

// unescape takes back the three escapes that Slack makes, and no other.
func unescape(s string) string { return escapes.Replace(s) }

var escapes = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
