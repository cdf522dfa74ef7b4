// Package markdown converts CommonMark to the dialects of chat platforms, and splits it
// without breaking it.
//
// Format parses a text once and converts it to a flat list of atoms: words, white space,
// indivisible text, and opening and closing marks. The splitter fills posts with atoms.
// At the end of a post, it closes every open mark, and it opens the mark again in the
// next post. Code fences and line prefixes are marks, too.
//
// FormatPartial formats the beginning of a text that may still grow. It does not parse
// the text.
package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Dialect is the markup that a platform reads.
type Dialect int

const (
	// Slack is mrkdwn. A user's mention stays a token; every other token of Slack is
	// escaped.
	// https://docs.slack.dev/messaging/formatting-message-text
	Slack Dialect = iota
	// Plain is readable text without any marks.
	Plain
)

// minLimit is the smallest limit of Format: a mark and one letter fit into it.
const minLimit = 64

// Format converts a text to the dialect and splits it into posts of at most limit UTF-16
// units. A text never has more characters than UTF-16 units, so the limit also holds on
// a platform that counts characters. A limit below 64 counts as 64. No post is empty; a
// text of white space gives no posts.
//
// Format keeps all text that CommonMark shows. It may drop the title of a link, the
// language of a fence, and surplus cells of a table. If a text consists of syntax alone
// ("#"), it stays unchanged.
func Format(source string, dialect Dialect, limit int) []string {
	var texts []string
	for _, p := range posts(source, dialect, limit) {
		texts = append(texts, p.text)
	}
	return texts
}

// Paragraphs is Format with a post for each paragraph, if there are at most so many. Code is never divided at its
// empty lines.
func Paragraphs(source string, dialect Dialect, limit, most int) []string {
	var paragraphs []string
	for _, p := range posts(source, dialect, limit) {
		from := 0
		for _, at := range append(p.blanks, len(p.text)) {
			paragraphs = append(paragraphs, strings.Trim(p.text[from:at], "\n"))
			from = at
		}
	}
	if len(paragraphs) > most {
		return Format(source, dialect, limit)
	}
	return paragraphs
}

func posts(source string, dialect Dialect, limit int) []post {
	limit = max(limit, minLimit)
	source = clean(source)
	style, bytes := dialect.style(), []byte(source)
	document, _ := parse(bytes)
	// Most texts fit into one post. Only a text that does not is cut between its words.
	var posts []post
	fits := len(bytes) <= limit
	if fits {
		posts, fits = split(atomsOf(document, builder{source: bytes, style: style, limit: limit, uncut: true}), limit)
	}
	if !fits {
		posts, _ = split(atomsOf(document, builder{source: bytes, style: style, limit: limit}), limit)
	}
	if len(posts) == 0 {
		literal := builder{style: style, limit: limit}
		literal.lines(strings.TrimSpace(source))
		posts, _ = split(literal.atoms, limit)
	}
	return posts
}

func atomsOf(document ast.Node, b builder) []atom {
	b.blocks(document)
	return b.atoms
}

// lineEnds replaces every line end with \n. It also replaces U+0000, because no platform
// accepts it.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD")

// clean returns valid text whose lines end with \n.
func clean(s string) string { return lineEnds.Replace(strings.ToValidUTF8(s, "\uFFFD")) }
