package markdown

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

type node = ast.Node

// mark is something that opens and closes around atoms. After a cut it is opened
// again with again.
type mark struct {
	open, again, close string
	// tight marks work only at a word's edge; inside a word they are set apart
	// by a zero-width space.
	tight bool
}

func around(s string, tight bool) *mark { return &mark{s, s, s, tight} }

// style is how a dialect writes what the parser finds. A nil mark writes nothing.
type style struct {
	bold, italic, strike *mark
	code, fence          string // empty: code stands as text
	language             bool   // a fence names its language
	headings             int    // how many levels have a mark of their own
	bullet, indent       string
	// text turns a source's text with its escapes into what is shown.
	text func(raw string) string
	// literal protects what is shown from being read as syntax.
	literal func(shown string) string
	// escapes are the characters that are written as something else, as a whole.
	escapes map[rune]string
	// mention finds the tokens that keep their meaning; nil for none.
	mention *regexp.Regexp
	link    func(label, address string) string
}

func (d Dialect) style() *style {
	switch d {
	case Slack:
		return &style{
			bold: around("*", true), italic: around("_", true), strike: around("~", true),
			code: "`", fence: "```", bullet: "• ", indent: "    ",
			text: shown, literal: asIs, link: slackLink,
			escapes: map[rune]string{'&': "&amp;", '<': "&lt;", '>': "&gt;"},
			mention: userMention,
		}
	case Discord:
		return &style{
			bold: around("**", false), italic: around("*", false), strike: around("~~", false),
			code: "`", fence: "```", language: true, headings: 3, bullet: "- ", indent: "  ",
			text: unescapeEntities, literal: discordSyntax.Replace, link: discordLink,
		}
	default:
		return &style{bullet: "• ", indent: "    ", text: shown, literal: asIs, link: plainLink}
	}
}

// entity is a character reference; CommonMark knows none without its semicolon.
// https://spec.commonmark.org/0.31.2/#entity-and-numeric-character-references
var entity = regexp.MustCompile(`&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});`)

// userMention is how Slack names a user in a text.
// Its ids are about ten characters long.
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

// shown resolves entities and backslash escapes; an escaped & begins no entity.
func shown(raw string) string {
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

func asIs(s string) string { return s }

// What is written in place of characters that would be read as syntax. A
// replacer is immutable.
var (
	discordSyntax = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "<", `\<`)
	discordLabel  = strings.NewReplacer("[", `\[`, "]", `\]`)
	discordTarget = strings.NewReplacer("(", "%28", ")", "%29", "`", "%60")
	slackLabel    = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	slackTarget   = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C", "`", "%60")
)

func slackLink(label, address string) string {
	target := slackTarget.Replace(address)
	if label == "" || label == address {
		return "<" + target + ">"
	}
	return "<" + target + "|" + slackLabel.Replace(apart(label, 2)) + ">"
}

func discordLink(label, address string) string {
	if label == "" || label == address {
		return strings.ReplaceAll(address, "`", "%60")
	}
	return "[" + discordLabel.Replace(discordSyntax.Replace(label)) + "](" + discordTarget.Replace(address) + ")"
}

func plainLink(label, address string) string {
	if label == "" || label == address || "mailto:"+label == address {
		return firstOf(label, address)
	}
	return label + " (" + address + ")"
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// isLink says whether an address may be a link: other schemes can do more than
// open a page.
func isLink(address string) bool {
	address = strings.ToLower(address)
	for _, scheme := range []string{"http://", "https://", "mailto:"} {
		if strings.HasPrefix(address, scheme) && len(address) > len(scheme) {
			return true
		}
	}
	return false
}
