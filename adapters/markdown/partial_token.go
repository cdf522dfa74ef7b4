package markdown

import (
	"bytes"
	"regexp"
	"strings"
)

// tokenHeld is the number of bytes that tell whether a character begins a token.
const tokenHeld = 128

// openSign matches a < and the character references to it, with a semicolon or not.
// https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references
const openSign = `(<|&(?:lt|#0*60|#x0*3c);?)`

// action matches the schemes that have an effect without // behind them.
const action = `(?:javascript|vbscript|data|blob|file|tel|sms|facetime|slack|skype|intent|view-source|ms-[a-z0-9+.-]*):`

// sign matches the sign of a mention or a command.
const sign = `(?:@[!&]|[!@#])`

// liveToken matches a token that Slack or Discord may read, up to the end of its first word:
// mentions, commands such as <!here>, and links. Its groups are the openSign and the
// scheme of a link. The name of similar text ends differently: <!DOCTYPE html>,
// <@NonNull String>.
// https://docs.slack.dev/messaging/formatting-message-text#advanced
// https://docs.discord.com/developers/reference#message-formatting
var liveToken = regexp.MustCompile(`(?i)^` + openSign + `(?:` + strings.Join([]string{
	`\\[!@#]|&(?:#|excl;|commat;|num;)`, // an escaped sign
	sign + `[a-z0-9]*&(?:#|[a-z]+;)`,    // a character reference in the name
	sign + `[a-z0-9]+\\?[>|^]`,
	sign + `[a-z0-9]{64}`,
	`@(?:\\[!&]|[!&](?:\\|[0-9]))`,                                                 // Discord's second form of a user, and a role
	`/[^ \t\n:<>|]+(?::[0-9]|[ \t])`, `id:(?:customize|browse|guide|linked-roles)`, // its commands and pages
	`!(?:channel|here|everyone|group|subteam|date)(?:[^a-z0-9]|$)`,
	`[@#](?-i:[A-Z0-9]{2,})(?:[^a-z0-9]|$)`, // an id
	`\\?([a-z][a-z0-9+.-]*)://`,
	`[a-z][a-z0-9+.-]*(?:&#|&colon;|\\:)`,
	`[a-z][a-z0-9+.-]{64}`,
	`\\?` + action,
}, "|") + `)`)

var (
	// tokenWord matches the first word of a token, with the character that ends it.
	tokenWord = regexp.MustCompile(`^[<&][^ \t\n<>|]*[ \t\n<>|]`)
	// targetWord matches the first word of an address, with the character that ends it.
	targetWord = regexp.MustCompile(`^[\x01-\x20<>\x7f]*[^\x01-\x20<>()"\x7f]+[\x01-\x20<>()"\x7f]`)
)

// ahead returns the beginning of s that word matches. If more text can change it, known
// is false. It reads at most tokenHeld bytes.
func ahead(s string, word *regexp.Regexp) (first string, known bool) {
	s = s[:min(len(s), tokenHeld)]
	if first = word.FindString(s); first != "" {
		return first, true
	}
	return s, len(s) == tokenHeld
}

// labelled matches the mention of a user with a label, as Slack's events have it, or its beginning. Its groups are
// the mention up to its id, and the closing bracket.
var labelled = regexp.MustCompile(`^(<@[A-Z0-9]+)\|[^<>|\n]*(>)?`)

// labelledMention returns the length of the labelled form of a mention at the beginning of s. n is 0 if there is none, or if
// its closing bracket is missing. may reports whether more text may bring the bracket.
func labelledMention(s, mention string) (n int, may bool) {
	head := s[:min(len(s), tokenHeld)]
	m := labelled.FindStringSubmatch(head)
	switch {
	case m == nil || m[1]+">" != mention:
		return 0, false
	case m[2] == "":
		return 0, len(m[0]) == len(s)
	}
	return len(m[0]), false
}

// token writes a < or a &. The label of a mention is dropped. It disables a token that is not one of the mentions.
func (p *partial) token(s string) (out string, n int) {
	for _, mention := range p.Mentions {
		switch {
		case mention != "" && strings.HasPrefix(s, mention):
			return mention, len(mention)
		case !p.Done && strings.HasPrefix(mention, s):
			return "", 0
		}
		if n, may := labelledMention(s, mention); n > 0 {
			return mention, n
		} else if may && !p.Done {
			return "", 0
		}
	}
	word, known := ahead(s, tokenWord)
	if !known && !p.Done {
		return "", 0
	}
	m := liveToken.FindStringSubmatch(word)
	if m == nil || strings.EqualFold(m[2], "http") || strings.EqualFold(m[2], "https") {
		return s[:1], 1
	}
	return m[1] + zeroWidth, len(m[1])
}

// safeTarget matches an address that a link may have.
var safeTarget = regexp.MustCompile(`(?i)^[ \t\n<>]*(?:https?://|mailto:)`)

// scheme matches a scheme, or a part of one. Punctuation in it may be escaped.
const scheme = `[a-z](?:[a-z0-9+.-]|\\[+.-])*`

// liveTarget matches an address with another scheme, or with one that it hides. A name
// of C++ (std::move) and a label of an argument (name: value) have no scheme; they
// follow a ] in code.
var liveTarget = regexp.MustCompile(`(?i)^(?:` + strings.Join([]string{
	`[\x01-\x20>\x7f]*<[\x01-\x20<>\x7f]*` + scheme + `(?:\\?:|[\x01-\x20\x7f])`,
	`[\x01-\x20>\x7f]*` + scheme + `\\?:[^:\t\n )]`,
	`[\x01-\x20<>\x7f]*` + scheme + `[\x01-\x08\x0b-\x1f\x7f]`, // readers ignore control characters
	`[\x01-\x20<>\x7f]*` + action,
	`[\x01-\x20<>\x7f]*(?:` + scheme + `)?&(?:#|[a-z]+;)`,
	`[\x01-\x20<>\x7fa-z0-9+.\\-]{100}`,
}, "|") + `)`)

// target writes a ]. The address of a link, an image or a definition may follow it.
func (p *partial) target(s string) (out string, n int) {
	switch {
	case len(s) == 1 && !p.Done:
		return "", 0
	case len(s) == 1 || s[1] != '(' && s[1] != ':':
		return "]", 1
	}
	address, known := ahead(s[2:], targetWord)
	switch {
	case safeTarget.MatchString(address):
	case !known && !p.Done:
		return "", 0
	case liveTarget.MatchString(address), s[1] == ':' && p.hides(address):
		return "]" + zeroWidth, 1
	}
	return "]", 1
}

var (
	// plainImage matches an image up to its address, if its alternative text has no syntax.
	plainImage = regexp.MustCompile(`^!\[([^][\\\x60<&\n]*)\]\(`)
	// openImage matches a text that may continue as such an image.
	openImage = regexp.MustCompile(`^!(?:\[[^][\\\x60<&\n]*\]?)?$`)
)

// image writes a "!". An image becomes a link with its alternative text. A zero-width space
// separates the sign from any other text that may be an image.
func (p *partial) image(s string) (out string, n int) {
	first := s[:min(len(s), tokenHeld)]
	isEscaped := (p.at-len(strings.TrimRight(p.text[:p.at], `\`)))%2 == 1
	switch m := plainImage.FindStringSubmatch(first); {
	case isEscaped || p.fence != nil:
		return "!", 1
	case m != nil && bytes.HasSuffix(p.out, []byte("!")):
		return zeroWidth + "[", len("![")
	case m != nil && m[1] == "":
		return "[image", len("![")
	case m != nil:
		return "[", len("![")
	case !p.Done && len(first) < tokenHeld && openImage.MatchString(first):
		return "", 0
	case strings.HasPrefix(s, "!["):
		return "!" + zeroWidth, 1
	}
	return "!", 1
}

// hides reports whether Slack would read the line as the definition of a link and not
// show it, as "[Bob]: hello".
func (p *partial) hides(address string) bool {
	label := strings.TrimLeft(p.text[p.lineStart:p.at], structural)
	return p.fence == nil && strings.HasPrefix(label, "[") && strings.TrimSpace(address) != ""
}
