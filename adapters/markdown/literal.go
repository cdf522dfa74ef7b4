package markdown

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
)

// formula matches a formula of TeX in a text.
var formula = regexp.MustCompile(`\$\$[^$]+\$\$|\$[^$\s][^$\n]*\$|\\\(.+?\\\)|\\\[.+?\\\]`)

// literalName matches the middle of a name between double underscores, such as __init__.
var literalName = regexp.MustCompile(`^[a-z][a-z0-9_]+$`)

// literalMark returns the mark of an emphasis that is no emphasis to a reader, but part of a name
// (__init__.py, src/*/*.go) or of a formula (a*b*c, 2**10); else "". Only plain text needs it: elsewhere a mark shows.
func (b *builder) literalMark(n *ast.Emphasis) string {
	if !b.style.literal {
		return ""
	}
	start, end := b.extent(n)
	if start < 0 || end < start {
		return ""
	}
	mark := strings.Repeat(string(b.source[start]), n.Level)
	before, _ := utf8.DecodeLastRune(b.source[:start])
	after, _ := utf8.DecodeRune(b.source[end:])
	inside := b.source[start+n.Level : end-n.Level]
	isLiteral := false
	switch mark {
	case "__":
		isLiteral = literalName.Match(inside)
	case "*":
		isLiteral = isOperand(before) || isOperand(after)
	case "**":
		isLiteral = isPower(before, rune(inside[0])) || isPower(rune(inside[len(inside)-1]), after)
	}
	if isLiteral {
		return mark
	}
	return ""
}

// isOperand reports whether a character beside an asterisk makes it a multiplication, or a part of a path.
func isOperand(r rune) bool { return isWordRune(r) && !isCJK(r) || r == '/' }

// isPower reports whether two asterisks between the characters raise one to the other: a letter or a digit of
// ASCII on both sides, and one of them a digit.
func isPower(base, exponent rune) bool {
	return max(base, exponent) < utf8.RuneSelf && (unicode.IsDigit(base) && isOperand(exponent) || isOperand(base) && unicode.IsDigit(exponent))
}

// extent returns where an emphasis begins and ends in the source, with its marks; a negative start if
// it begins or ends with another kind of node than text.
func (b *builder) extent(n *ast.Emphasis) (start, end int) {
	edge := func(n ast.Node, next func(ast.Node) ast.Node) (t *ast.Text, marks int) {
		for {
			switch inner := n.(type) {
			case *ast.Emphasis:
				marks += inner.Level
				n = next(inner)
			case *ast.Text:
				return inner, marks
			default:
				return nil, 0
			}
		}
	}
	first, opened := edge(n, ast.Node.FirstChild)
	last, closed := edge(n, ast.Node.LastChild)
	if first == nil || last == nil {
		return -1, 0
	}
	return first.Segment.Start - opened, last.Segment.Stop + closed
}
