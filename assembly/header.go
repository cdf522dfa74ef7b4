package assembly

import (
	"strings"
	"unicode"

	"parley/ingest/event"
)

// nobody is the name of who has neither a name nor an id that can be shown.
const nobody = "unknown"

// attribute puts the author's header before text: "[Name]: text", or
// "[Name (<@U…>)]: text". It never looks at the text.
func attribute(author *event.Metadata, text string) string {
	if text == "" {
		return "[" + label(author) + "]:"
	}
	return "[" + label(author) + "]: " + text
}

// label names an author on one line and without square brackets, followed by
// the token that mentions him where he has one.
func label(author *event.Metadata) string {
	name := clean(author.SenderDisplayName)
	if name == "" {
		name = clean(author.SenderID)
	}
	if name == "" {
		name = nobody
	}
	if token := mention(author); token != "" {
		return name + " (" + token + ")"
	}
	return withoutToken(author.Source, name)
}

// withoutToken rewrites the end of a name that would read as a mention token.
// No name on Slack and Discord can: their tokens hold angle brackets.
func withoutToken(source, name string) string {
	open := strings.LastIndex(name, " (")
	if open < 0 || !strings.HasSuffix(name, ")") || !isToken(source, name[open+2:len(name)-1]) {
		return name
	}
	return name[:open] + " ‹" + name[open+2:len(name)-1] + "›"
}

// maxToken is the length in bytes of the longest mention token that is shown.
const maxToken = 64

// mention is the token by which the agent can mention the author; empty for a
// bot, and where the metadata's token has not the form of its source.
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
		id := tagged(token)
		return len(id) > 1 && (id[0] == 'U' || id[0] == 'W') && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
	case event.Discord:
		id := tagged(token)
		return id != "" && strings.Trim(id, "0123456789") == ""
	case event.BlueBubbles:
		return false // iMessage has no tokens, and its names end in "(+1555…)"
	}
	return isFreeToken(token)
}

// tagged is what stands in "<@…>"; empty for anything else.
func tagged(token string) string {
	if !strings.HasPrefix(token, "<@") || !strings.HasSuffix(token, ">") {
		return ""
	}
	return token[2 : len(token)-1]
}

// isFreeToken judges the tokens of sources whose syntax we don't know. One is a
// single word that can't end a header, and more than letters and digits: a plain
// word mentions nobody, and "Bob (admin)" is a name.
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
