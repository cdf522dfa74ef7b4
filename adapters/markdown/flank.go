package markdown

import (
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// neighbour has the properties of the character beside a run of signs that the rules of emphasis use.
type neighbour struct{ space, punctuation, cjk bool }

func neighbourOf(r rune) neighbour {
	return neighbour{r == utf8.RuneError || unicode.IsSpace(r), util.IsPunctRune(r) || unicode.IsSymbol(r), isCJK(r)}
}

// isCJK reports whether a character belongs to Chinese, Japanese or Korean, which write no spaces between words, or is
// their punctuation.
func isCJK(r rune) bool {
	return r >= 0x1100 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo, unicode.Yi) ||
		r > 0x3000 && r <= 0x303f || r >= 0x30a0 && r <= 0x30ff || r >= 0xfe30 && r <= 0xfe4f || r >= 0xff00 && r <= 0xffef)
}

// flanking reports whether a run of signs between two texts may open, or close, emphasis as people mean it. Beside
// Chinese, Japanese and Korean, CommonMark's rules do not know the end of a word, so that "は**「重」**で" would have stars.
// There, punctuation of these scripts counts as a letter, and their letters count as spaces beside other punctuation.
func flanking(sign byte, before, after string) (opens, closes bool) {
	last, next := edges(before, after)
	return flanks(sign, last, next)
}

// flankingStrictly is flanking as CommonMark has it.
// https://spec.commonmark.org/0.31.2/#left-flanking-delimiter-run
func flankingStrictly(sign byte, before, after string) (opens, closes bool) {
	last, next := edges(before, after)
	last.cjk, next.cjk = false, false
	return flanks(sign, last, next)
}

func edges(before, after string) (last, next neighbour) {
	l, _ := utf8.DecodeLastRuneInString(before)
	n, _ := utf8.DecodeRuneInString(after)
	return neighbourOf(l), neighbourOf(n)
}

func flanks(sign byte, last, next neighbour) (opens, closes bool) {
	side := func(inner, outer neighbour) bool {
		return !inner.space && (!inner.punctuation || inner.cjk || outer.space || outer.punctuation || outer.cjk)
	}
	if sign != '_' {
		return side(next, last), side(last, next)
	}
	last.cjk, next.cjk = false, false
	left, right := side(next, last), side(last, next)
	return left && (!right || last.punctuation), right && (!left || next.punctuation)
}

// flanked is a parser of emphasis with the rules of flanking.
type flanked struct{ parser.InlineParser }

// Parse implements parser.InlineParser.
func (f flanked) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	n := f.InlineParser.Parse(parent, block, pc)
	if d, ok := n.(*parser.Delimiter); ok && d.Char != '_' {
		rest, _ := block.PeekLine()
		next := rune(' ')
		if len(rest) > 0 {
			next, _ = utf8.DecodeRune(rest)
		}
		opens, closes := flanks(d.Char, neighbourOf(before), neighbourOf(next))
		d.CanOpen, d.CanClose = d.CanOpen || opens, d.CanClose || closes
	}
	return n
}
