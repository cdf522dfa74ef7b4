package markdown

import "github.com/yuin/goldmark/text"

// PartialParts calls FormatPartial and returns the parts of the result: the post
// without the line that closes a fence, that line, the text that opens the fence again,
// the number of used bytes of the cleaned text, and whether the post is full.
func PartialParts(text string, options PartialOptions) (body, closing, reopen string, used int, full bool) {
	p := formatPartial(text, options)
	return string(p.out), p.close, p.reopen, p.at, p.full
}

var (
	// Clean is the first step of every formatter: it replaces bytes that no post shows.
	Clean = clean
	// Unescape resolves character references and backslash escapes.
	Unescape = unescape
)

// FormatCut is Format with every text cut between its words, whether it must be or not.
func FormatCut(source string, dialect Dialect, limit int) []string {
	style, bytes := dialect.style(), []byte(clean(source))
	posts, _ := split(atomsOf(commonMark().Parse(text.NewReader(bytes)), builder{source: bytes, style: style}), limit)
	return posts
}
