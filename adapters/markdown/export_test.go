package markdown

import "github.com/yuin/goldmark/ast"

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

// RunOf returns the length of the run of signs with which a text begins, as far as it is read.
var RunOf = runOf

// OpensFence reports whether a line opens a fence.
func OpensFence(line string) bool { return openFence(line) != nil }

// FormatCut is Format with every text cut between its words, whether it must be or not.
func FormatCut(source string, dialect Dialect, limit int) []string {
	style, bytes := dialect.style(), []byte(clean(source))
	document, _ := parse(bytes)
	var texts []string
	posts, _ := split(atomsOf(document, builder{source: bytes, style: style, limit: limit}), limit)
	for _, p := range posts {
		texts = append(texts, p.text)
	}
	return texts
}

// Work returns the bytes that the parser of inlines may have read, and the greatest number of quotes
// and lists inside each other.
func Work(source string) (work, depth int) {
	document, work := parse([]byte(source))
	inside := 0
	_ = ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if n.Kind() == ast.KindBlockquote || n.Kind() == ast.KindList {
			if inside--; entering {
				inside += 2
			}
		}
		depth = max(depth, inside)
		return ast.WalkContinue, nil
	})
	return work, depth
}

// The bounds of the parser's work.
const MaxWork, MaxDepth = maxWork, maxDepth
