package assembly

import (
	"strings"
	"unicode"

	"parley/ingest/event"
)

// unknownName is the name of an author without a visible name or id.
const unknownName = "unknown"

// attribute returns the text with its author's header: "[Name]: text", or
// "[Name (<@U…>)]: text". It never reads the text.
func attribute(author *event.Metadata, text string) string {
	if text == "" {
		return "[" + label(author) + "]:"
	}
	return "[" + label(author) + "]: " + text
}

// label returns an author's name, on one line and without square brackets, with the
// author's mention token if there is one.
func label(author *event.Metadata) string {
	name := clean(author.SenderDisplayName)
	if name == "" {
		name = clean(author.SenderID)
	}
	if name == "" {
		name = unknownName
	}
	if token := mention(author); token != "" {
		return name + " (" + token + ")"
	}
	return withoutToken(author.Source, name)
}

// withoutToken changes the end of a name that looks like a mention token. No name on Slack
// and Discord does, because their tokens contain angle brackets.
func withoutToken(source, name string) string {
	open := strings.LastIndex(name, " (")
	if open < 0 || !strings.HasSuffix(name, ")") || !isToken(source, name[open+2:len(name)-1]) {
		return name
	}
	return name[:open] + " ‹" + name[open+2:len(name)-1] + "›"
}

// maxToken is the maximum length, in bytes, of a mention token in a header.
const maxToken = 64

// mention returns the token with which the agent can mention the author. It is empty for a
// bot, and if the token does not have the form of its source.
func mention(author *event.Metadata) string {
	if author.SenderType == event.Bot || !isToken(author.Source, author.MentionToken) {
		return ""
	}
	return author.MentionToken
}

func isToken(source, token string) bool {
	if len(token) > maxToken {
		return false
	}
	switch event.Platform(source) {
	case event.Slack:
		id := tokenID(token)
		return len(id) > 1 && (id[0] == 'U' || id[0] == 'W') && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
	case event.Discord:
		id := tokenID(token)
		return id != "" && strings.Trim(id, "0123456789") == ""
	case event.BlueBubbles:
		return false // iMessage has no tokens, and its names end in "(+1555…)"
	}
	return isFreeToken(token)
}

// tokenID returns the id in a token "<@…>". It is empty for any other token.
func tokenID(token string) string {
	if !strings.HasPrefix(token, "<@") || !strings.HasSuffix(token, ">") {
		return ""
	}
	return token[2 : len(token)-1]
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
