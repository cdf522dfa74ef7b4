package markdown

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

type node = ast.Node

// mark opens before atoms and closes after them. In a later post, again opens it again.
type mark struct {
	open, again, close string
	// tight means that the mark works only at the edge of a word. Inside a word, a
	// zero-width space separates it.
	tight bool
}

// around returns the tight mark that opens and closes with s.
func around(s string) *mark { return &mark{s, s, s, true} }

// style is the syntax of a dialect. A nil mark adds nothing.
type style struct {
	bold, italic, strike *mark
	code, fence          string // empty: code is text
	// escapes are the indivisible replacements of characters.
	escapes map[rune]string
	// mention matches the tokens that keep their effect; nil for none.
	mention *regexp.Regexp
	link    func(label, address string) string
	// literal keeps the characters of formulas and names that CommonMark takes for syntax.
	literal bool
}

func (d Dialect) style() *style {
	if d == Plain {
		return &style{link: plainLink, literal: true}
	}
	return &style{
		bold: around("*"), italic: around("_"), strike: around("~"), code: "`", fence: "```",
		escapes: map[rune]string{'&': "&amp;", '<': "&lt;", '>': "&gt;"}, mention: userMention, link: slackLink,
	}
}

// entity matches a character reference. CommonMark requires its semicolon.
// https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references
var entity = regexp.MustCompile(`&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});`)

// userMention matches the mention of a user in Slack. Ids of users have about ten
// characters.
// https://docs.slack.dev/messaging/formatting-message-text#mentioning-users
var userMention = regexp.MustCompile(`<@[UW][A-Z0-9]{1,40}>`)

func unescapeEntities(s string) string {
	return entity.ReplaceAllStringFunc(s, func(reference string) string {
		if reference[1] == '#' {
			return string(util.ResolveNumericReferences([]byte(reference)))
		}
		return string(util.ResolveEntityNames([]byte(reference)))
	})
}

// unescape resolves character references and backslash escapes. An escaped & begins no
// reference.
func unescape(raw string) string {
	if !strings.ContainsAny(raw, "\\&") {
		return raw
	}
	var b strings.Builder
	for {
		at := strings.IndexByte(raw, '\\')
		if at < 0 || at+1 == len(raw) {
			break
		}
		b.WriteString(unescapeEntities(raw[:at]))
		if !util.IsPunct(raw[at+1]) {
			b.WriteByte('\\')
		}
		b.WriteByte(raw[at+1])
		raw = raw[at+2:]
	}
	b.WriteString(unescapeEntities(raw))
	return b.String()
}

// The replacers escape characters that a platform would read as syntax. A replacer is
// immutable.
var (
	slackLabel  = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	slackTarget = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C", "`", "%60")
)

func slackLink(label, address string) string {
	target := slackTarget.Replace(address)
	if label == "" || label == address {
		return "<" + target + ">"
	}
	return "<" + target + "|" + slackLabel.Replace(splitBackticks(label, 2)) + ">"
}

func plainLink(label, address string) string {
	if label == "" || label == address || "mailto:"+label == address {
		return cmp.Or(label, address)
	}
	return label + " (" + address + ")"
}

// isLink reports whether an address may be a link. Other schemes can do more than open a
// page.
func isLink(address string) bool {
	address = strings.ToLower(address)
	for _, scheme := range []string{"http://", "https://", "mailto:"} {
		if strings.HasPrefix(address, scheme) && len(address) > len(scheme) {
			return true
		}
	}
	return false
}
