package markdown

import (
	"strings"
	"unicode"
)

// kind is what the splitter may do with an atom.
type kind uint8

const (
	word     kind = iota // cut only where nothing better is left
	whole                // never cut, as long as it fits into a post at all
	space                // white space: dropped where a post ends or begins
	newline              //
	blank                // the empty line between two paragraphs
	codeLine             // a newline inside a fence, which no other may join
	opening              // of mark
	closing              // of mark, which is the last one opened
)

// atom is the smallest thing that the splitter moves.
type atom struct {
	kind kind
	text string
	mark *mark
	// pieces stand in for a whole one that is too long for a post.
	pieces []atom
}

func (a *atom) isSpace() bool { return a.kind >= space && a.kind <= codeLine }

// zeroWidth is put where two characters must not be read together.
const zeroWidth = "\u200b"

// builder turns a parsed text into atoms.
type builder struct {
	source []byte
	style  *style
	atoms  []atom
	// prefixes stand before each line: of quotes, list items, headings.
	prefixes []*prefix
	line     *mark   // the one that is open
	inline   []*mark // open within the line
}

// prefix stands before a line: first before the next one, rest before those after.
type prefix struct {
	first, rest string
	quote       bool
}

func (b *builder) add(a atom) { b.atoms = append(b.atoms, a) }

func (b *builder) open(m *mark)  { b.add(atom{kind: opening, mark: m}) }
func (b *builder) close(m *mark) { b.add(atom{kind: closing, mark: m}) }

// beginLine opens the prefixes of a line as one mark, so that a post that begins
// inside the line begins with them.
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

// breakLine ends a line inside a paragraph. Emphasis is closed and opened again,
// since platforms read it line by line.
func (b *builder) breakLine() {
	for i := len(b.inline) - 1; i >= 0; i-- {
		b.close(b.inline[i])
	}
	b.endLine()
	b.add(atom{kind: newline, text: "\n"})
	b.beginLine()
	for _, m := range b.inline {
		b.open(m)
	}
}

// within writes what content adds inside a mark; nil is no mark, and one that is
// open already is not opened twice.
func (b *builder) within(m *mark, content func()) {
	for _, open := range b.inline {
		if open == m {
			m = nil
		}
	}
	if m == nil {
		content()
		return
	}
	b.inline = append(b.inline, m)
	b.open(m)
	content()
	b.close(m)
	b.inline = b.inline[:len(b.inline)-1]
}

// lines writes text that is to be shown as it stands.
func (b *builder) lines(shown string) {
	for i, line := range strings.Split(shown, "\n") {
		if i > 0 {
			b.breakLine()
		}
		b.words(b.style.literal(line))
	}
}

// words cuts a text into words, white space and what must stay whole.
func (b *builder) words(s string) {
	b.atoms = append(b.atoms, b.cut(s)...)
}

func (b *builder) cut(s string) []atom {
	if b.style.fence != "" {
		s = apart(s, 2)
	}
	return b.scan(s, true)
}

// scan makes atoms of a text; without spaces, all but escapes are words.
func (b *builder) scan(s string, spaces bool) (atoms []atom) {
	from, in := 0, word
	flush := func(to int) {
		if from < to {
			atoms = append(atoms, atom{kind: in, text: s[from:to]})
		}
	}
	for i, r := range s {
		escape, escaped := b.style.escapes[r]
		now := word
		if spaces && unicode.IsSpace(r) {
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

// apart puts a zero-width space between backticks where so many or more stand
// together, so that they neither open nor close a fence.
func apart(s string, atLeast int) string {
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
