package assembly

import (
	"strings"
	"unicode"

	"parley/ingest/event"
)

// Mentions returns the form of a source's mention tokens, and whether the source is a known
// platform. The form is nil for a platform without mentions.
type Mentions func(source string) (isMention func(token string) bool, known bool)

// naming writes the names of authors.
type naming struct {
	agent    string // the name of our own messages
	mentions Mentions
}

// unknownName is the name of an author without a visible name or id.
const unknownName = "unknown"

// attribute returns the text with its author's header: "[Name]: text", or
// "[Name (<@U…>)]: text". It never reads the text.
func (n naming) attribute(author *event.Metadata, text string) string {
	if text == "" {
		return "[" + n.label(author) + "]:"
	}
	return "[" + n.label(author) + "]: " + text
}

// label returns an author's name, on one line and without square brackets, with the
// author's mention token if there is one.
func (n naming) label(author *event.Metadata) string {
	name := NameOf(author)
	if token := n.mention(author); token != "" {
		return name + " (" + token + ")"
	}
	return n.withoutToken(author.Source, name)
}

// withoutToken changes the end of a name that looks like a mention token. No name on Slack
// and Discord does, because their tokens contain angle brackets.
func (n naming) withoutToken(source, name string) string {
	open := strings.LastIndex(name, " (")
	if open < 0 || !strings.HasSuffix(name, ")") || !n.isToken(source, name[open+2:len(name)-1]) {
		return name
	}
	return name[:open] + " ‹" + name[open+2:len(name)-1] + "›"
}

// maxToken is the maximum length, in bytes, of a mention token in a header.
const maxToken = 64

// mention returns the token with which the agent can mention the author. It is empty for a
// bot, and if the token does not have the form of its source.
func (n naming) mention(author *event.Metadata) string {
	if author.SenderType == event.Bot || !n.isToken(author.Source, author.MentionToken) {
		return ""
	}
	return author.MentionToken
}

// isToken reports whether a token is a mention token of a source.
func (n naming) isToken(source, token string) bool {
	if len(token) > maxToken {
		return false
	}
	if n.mentions != nil {
		if isMention, known := n.mentions(source); known {
			return isMention != nil && isMention(token)
		}
	}
	return isFreeToken(token)
}

// isFreeToken reports whether a token of a source with unknown syntax is a mention token:
// a single word that cannot end a header and is not only letters and digits. A plain
// word is no mention, and "Bob (admin)" is a name.
func isFreeToken(token string) bool {
	sign := false
	for _, r := range token {
		if unicode.IsSpace(r) || invisible(r) || r == unicode.ReplacementChar || strings.ContainsRune("[]()", r) {
			return false
		}
		sign = sign || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	return sign
}
