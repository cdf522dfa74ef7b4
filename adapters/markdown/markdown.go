// Package markdown rewrites CommonMark in the dialects that chat platforms read,
// and splits it without breaking it.
//
// A text is parsed once and becomes a flat row of atoms: words, white space,
// things that must stay whole, and marks that open and close. The splitter fills
// posts with them; where it cuts, it closes the marks that are open, code fences
// and line prefixes among them, and opens them again in the next post.
package markdown

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Dialect is what a platform makes of a text.
type Dialect int

const (
	// Slack is mrkdwn. Everything that Slack would read as a token is escaped,
	// but for a user's mention.
	// https://docs.slack.dev/messaging/formatting-message-text
	Slack Dialect = iota
	// Discord reads most of CommonMark itself.
	// https://support.discord.com/hc/en-us/articles/210298617
	Discord
	// Plain has no marks at all, and reads well without.
	Plain
)

// minLimit keeps a limit larger than any mark and its content's first letter.
const minLimit = 64

// Format rewrites a text in the dialect and splits it into posts of at most
// limit UTF-16 units, which is never less than what a platform that counts
// characters counts. A limit below 64 is taken as 64. No post is empty; a text
// of white space makes none.
//
// Nothing is lost that CommonMark shows, which leaves a link's title, a fence's
// language and a table's surplus cells; where all of a text would be syntax
// ("#"), it stands as it was written.
func Format(source string, dialect Dialect, limit int) []string {
	limit = max(limit, minLimit)
	source = clean(source)
	b := builder{source: []byte(source), style: dialect.style()}
	b.blocks(commonMark().Parse(text.NewReader(b.source)))
	posts := split(b.atoms, limit)
	if len(posts) == 0 {
		literal := builder{style: b.style}
		literal.lines(strings.TrimSpace(source))
		posts = split(literal.atoms, limit)
	}
	return posts
}

// commonMark reads CommonMark with tables, strikethrough and bare links, and
// without link reference definitions: those vanish from the text, and in a chat
// "[Bob]: hello" is something that was said. It is safe for concurrent use.
var commonMark = sync.OnceValue(func() parser.Parser {
	p := parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...),
	)
	goldmark.New(goldmark.WithParser(p),
		goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.Linkify))
	return p
})

// lineEnds makes lines end in \n alone; U+0000 is taken by no platform.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD")

func clean(s string) string { return lineEnds.Replace(strings.ToValidUTF8(s, "\uFFFD")) }
