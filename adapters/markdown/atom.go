package markdown

import (
	"slices"
	"strings"
	"unicode"
)

// kind tells the splitter how to treat an atom.
type kind uint8

const (
	word     kind = iota // divided only if the post has no better place to end
	whole                // never divided, unless it is longer than a post
	space                // white space, dropped at the end and the beginning of a post
	newline              //
	blank                // the empty line between two paragraphs
	codeLine             // a newline inside a fence, never merged with other white space
	opening              // of mark
	closing              // of mark, the last opened one
)

// atom is the smallest unit of the splitter.
type atom struct {
	kind kind
	text string
	mark *mark
	// pieces replace an atom of kind whole that is too long for a post.
	pieces []atom
}

func (a *atom) isSpace() bool { return a.kind >= space && a.kind <= codeLine }

// zeroWidth separates two characters that together would be syntax.
const zeroWidth = "\u200b"

// builder converts a parsed text to atoms.
type builder struct {
	source []byte
	style  *style
	// uncut keeps the white space between the words of a text in one atom with them.
	uncut bool
	limit int // of a post
	atoms []atom
	// prefixes begin every line: those of quotes, list items and headings.
	prefixes []*prefix
	line     *mark   // the open prefixes of the current line
	inline   []*mark // the open marks within the line
}

// prefix begins lines: first begins the next line, and rest the lines after it.
type prefix struct {
	first, rest string
	quote       bool
}

func (b *builder) add(a atom) { b.atoms = append(b.atoms, a) }

func (b *builder) open(m *mark)  { b.add(atom{kind: opening, mark: m}) }
func (b *builder) close(m *mark) { b.add(atom{kind: closing, mark: m}) }

// beginLine opens the prefixes of a line as one mark, so that a post that begins within
// the line begins with them too.
func (b *builder) beginLine() {
	var first, again strings.Builder
	for _, p := range b.prefixes {
		first.WriteString(p.first)
		again.WriteString(p.rest)
		p.first = p.rest
	}
	if first.Len() > 0 {
		b.line = &mark{open: first.String(), again: again.String()}
		b.open(b.line)
	}
}

func (b *builder) endLine() {
	if b.line != nil {
		b.close(b.line)
		b.line = nil
	}
}

// breakLine ends a line inside a paragraph. It closes emphasis and opens it again,
// because platforms read emphasis line by line.
func (b *builder) breakLine() {
	for _, m := range slices.Backward(b.inline) {
		b.close(m)
	}
	b.endLine()
	b.add(atom{kind: newline, text: "\n"})
	b.beginLine()
	for _, m := range b.inline {
		b.open(m)
	}
}

// within puts the atoms that content adds inside a mark. It adds no mark if m is nil or
// already open.
func (b *builder) within(m *mark, content func()) {
	if m == nil || slices.Contains(b.inline, m) {
		content()
		return
	}
	b.inline = append(b.inline, m)
	b.open(m)
	content()
	b.close(m)
	b.inline = b.inline[:len(b.inline)-1]
}

// lines adds a text that readers must see unchanged.
func (b *builder) lines(shown string) {
	for i, line := range strings.Split(shown, "\n") {
		if i > 0 {
			b.breakLine()
		}
		b.words(line)
	}
}

// words adds a text as words, white space and indivisible escapes.
func (b *builder) words(s string) {
	b.atoms = append(b.atoms, b.cut(s)...)
}

func (b *builder) cut(s string) []atom {
	if b.style.fence != "" {
		s = splitBackticks(s, 2)
	}
	return b.scan(s, true)
}

// scan converts a text to atoms. If spaces is false, everything but escapes is a word.
func (b *builder) scan(s string, spaces bool) (atoms []atom) {
	from, in := 0, word
	var first, last int // white space between them is a part of the words
	if b.uncut {
		first, last = len(s)-len(strings.TrimLeftFunc(s, unicode.IsSpace)), len(strings.TrimRightFunc(s, unicode.IsSpace))
	}
	flush := func(to int) {
		if from < to {
			atoms = append(atoms, atom{kind: in, text: s[from:to]})
		}
	}
	for i, r := range s {
		escape, escaped := b.style.escapes[r]
		now := word
		if spaces && unicode.IsSpace(r) && (i < first || i >= last) {
			now = space
		}
		if now != in || escaped {
			flush(i)
			from, in = i, now
		}
		if escaped {
			atoms = append(atoms, atom{kind: whole, text: escape})
			from = i + len(string(r))
		}
	}
	flush(len(s))
	return atoms
}

// splitBackticks puts zero-width spaces into runs of atLeast backticks or more, so that
// they neither open nor close a fence.
func splitBackticks(s string, atLeast int) string {
	if !strings.Contains(s, strings.Repeat("`", atLeast)) {
		return s
	}
	var b strings.Builder
	for s != "" {
		run := len(s) - len(strings.TrimLeft(s, "`"))
		if run < atLeast {
			run = max(run, 1)
			b.WriteString(s[:run])
		} else {
			b.WriteString(strings.Repeat("`"+zeroWidth, run-1) + "`")
		}
		s = s[run:]
	}
	return b.String()
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
