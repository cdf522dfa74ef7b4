package assembly

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"parley/assembly/lookalike"
	"parley/ingest/event"
)

// Mentions returns the form of a source's mention tokens, and whether the source is a known
// platform. The form is nil for a platform without mentions.
type Mentions func(source string) (isMention func(token string) bool, known bool)

// naming writes the names of authors.
type naming struct {
	agent    string // the name of our own messages
	mentions Mentions
	others   []string // the ids of the other agents
}

// unknownName is the name of an author without a visible name or id.
const unknownName = "unknown"

// attribute returns the text with its author's header: "[Name]: text", or
// "[Name (<@U…>)]: text", and "[[Schedule morning]]: text" for one of Parley's own authors. It never reads the text.
func (n naming) attribute(l *Line, text string) string {
	label := n.label(&l.Metadata)
	if l.Parley {
		label = ownLabel(&l.Metadata)
	}
	if text == "" {
		return "[" + label + "]:"
	}
	return "[" + label + "]: " + text
}

// ownLabel returns the name of one of Parley's own authors. It has square brackets, which no other name has.
func ownLabel(author *event.Metadata) string { return "[" + NameOf(author) + "]" }

// label returns an author's name, on one line and without square brackets, with the
// author's mention token if there is one. A name without a token that reads like one of Parley's own authors has the
// author's id behind it.
func (n naming) label(author *event.Metadata) string {
	name := NameOf(author)
	if token := n.mention(author); token != "" {
		return name + " (" + token + ")"
	}
	if n.isOwn(name) {
		return name + " (" + cmp.Or(clean(author.SenderID), unknownName) + ")"
	}
	return n.withoutToken(author.Source, name)
}

// isOwn reports whether people may take a name for one of Parley's own authors: Parley, a schedule, an operator, or an agent.
func (n naming) isOwn(name string) bool {
	seen := strings.ToLower(strings.TrimSpace(lookalike.Seen(name)))
	switch first, _, more := strings.Cut(seen, " "); {
	case seen == "parley", seen == "system", more && (first == "schedule" || first == "operator"), strings.HasPrefix(seen, event.OperatorSender("")):
		return true
	}
	is := func(agent string) bool { return strings.EqualFold(seen, agent) }
	return is(n.agent) || slices.ContainsFunc(n.others, is)
}

// withoutToken changes the end of a name that looks like a mention token. No name on Slack
// and Discord does, because their tokens contain angle brackets.
func (n naming) withoutToken(source, name string) string {
	open := strings.LastIndex(name, " (")
	if open < 0 || !strings.HasSuffix(name, ")") {
		return name
	}
	token := name[open+2 : len(name)-1]
	if !n.isToken(source, token) {
		return name
	}
	return name[:open] + " ‹" + token + "›"
}

// maxToken is the maximum length, in bytes, of a mention token in a header.
const maxToken = 64

// mention returns the token with which the agent can mention the author. It is empty for a
// bot, and if the token does not have the form of its source.
func (n naming) mention(author *event.Metadata) string {
	if author.SenderType == event.Bot || !n.isToken(author.Source, author.MentionToken) || n.isOfPlatform(author) {
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

// platformTokens begin the tokens of Slack and Discord.
var platformTokens = []string{"<@", "<!", "<#"}

// isOfPlatform reports whether the token of an author of an unknown source reads like one of a platform, which only that platform's
// own people have.
func (n naming) isOfPlatform(author *event.Metadata) bool {
	if n.mentions == nil {
		return false
	}
	if _, known := n.mentions(author.Source); known {
		return false
	}
	seen := lookalike.Seen(author.MentionToken)
	return slices.ContainsFunc(platformTokens, func(begin string) bool { return strings.HasPrefix(seen, begin) })
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
