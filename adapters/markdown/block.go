package markdown

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

const (
	// rule is the text of a thematic break.
	rule = "———"
	// bullet begins an item of a list, and indent its other lines.
	bullet, indent = "• ", "    "
)

// blocks adds the blocks of a container with empty lines between them.
func (b *builder) blocks(parent node) {
	b.children(parent, func(node) kind { return blank }, b.block)
}

// children calls write for each child of parent. Before each child but the first, it adds
// the separator that between returns.
func (b *builder) children(parent node, between func(node) kind, write func(node)) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil {
			b.separate(between(n))
		}
		write(n)
	}
}

// separate ends a block. A quote contains no empty lines, because an empty line would end
// the quote.
func (b *builder) separate(k kind) {
	if k == blank && !slices.ContainsFunc(b.prefixes, func(p *prefix) bool { return p.quote }) {
		b.add(atom{kind: blank, text: "\n\n"})
		return
	}
	b.add(atom{kind: newline, text: "\n"})
}

func (b *builder) block(n node) {
	switch n := n.(type) {
	case *ast.Heading: // no dialect has headings
		b.oneLine(func() { b.within(b.style.bold, func() { b.inlines(n) }) })
	case *ast.ThematicBreak:
		b.oneLine(func() { b.words(rule) })
	case *ast.CodeBlock:
		b.code(b.raw(n.Lines()), "", "")
	case *ast.FencedCodeBlock:
		info := ""
		if n.Info != nil {
			info = unescape(string(n.Info.Segment.Value(b.source)))
		}
		b.code(b.raw(n.Lines()), strings.TrimSpace(info), "")
	case *ast.Blockquote:
		b.indented(&prefix{"> ", "> ", true}, func() { b.blocks(n) })
	case *ast.List:
		b.list(n)
	case *ast.HTMLBlock:
		html := b.raw(n.Lines())
		if n.HasClosure() {
			html += string(n.ClosureLine.Value(b.source))
		}
		b.oneLine(func() { b.lines(strings.TrimSpace(html)) })
	case *extast.Table:
		b.table(n)
	default: // a paragraph
		b.oneLine(func() { b.inlines(n) })
	}
}

// oneLine adds content that begins a line. The content may contain line breaks.
func (b *builder) oneLine(content func()) {
	b.beginLine()
	content()
	b.endLine()
}

// maxPrefixes bounds the prefixes of a line. A short text can nest thousands of quotes or lists, and
// would otherwise begin each of its lines with all their prefixes.
const maxPrefixes = 10

// indented adds content whose lines begin with a prefix.
func (b *builder) indented(p *prefix, content func()) {
	if len(b.prefixes) == maxPrefixes {
		content()
		return
	}
	b.prefixes = append(b.prefixes, p)
	content()
	b.prefixes = b.prefixes[:len(b.prefixes)-1]
}

func (b *builder) list(n *ast.List) {
	number := n.Start
	b.children(n, func(node) kind { return gap(n) }, func(item node) {
		marker := bullet
		if n.IsOrdered() {
			marker = strconv.Itoa(number) + ". "
			number++
		}
		b.indented(&prefix{marker, indent, false}, func() { b.item(n, item) })
	})
}

// gap returns the separator between the parts of a list.
func gap(n *ast.List) kind {
	if n.IsTight {
		return newline
	}
	return blank
}

// item adds the blocks of a list item. A nested list follows without an empty line.
func (b *builder) item(list *ast.List, item node) {
	b.children(item, func(n node) kind {
		if _, nested := n.(*ast.List); nested {
			return newline
		}
		return gap(list)
	}, b.block)
}

// table adds a table as aligned text. Each post of a long table begins with its head, unless the head would
// fill a third of the post.
func (b *builder) table(n *extast.Table) {
	text := b.aligned(n)
	head := ""
	if lines := strings.SplitAfterN(text, "\n", 3); len(lines) == 3 && lines[2] != "" && units(lines[0]+lines[1]) <= b.limit/3 {
		head = lines[0] + lines[1]
	}
	b.code(text, "", head)
}

// code adds a code block between fences. The fences have no prefixes of quotes and lists,
// because no platform reads both together. An info string that cannot be a language is
// text, so it becomes the first line of the code. A post that begins within the code begins with head.
func (b *builder) code(code, info, head string) {
	code = strings.TrimRight(code, "\n")
	if info != "" && !isLanguage(info) {
		code = info + "\n" + code
	}
	signs := b.style.fence
	if signs == "" {
		b.prefixedCode(code, head)
		return
	}
	fence := &mark{open: signs + "\n", again: signs + "\n" + joined(b.scan(splitBackticks(head, 3), false)), close: "\n" + signs}
	b.open(fence)
	b.codeLines(splitBackticks(code, 3), func() { b.add(atom{kind: codeLine, text: "\n"}) })
	b.close(fence)
}

// prefixedCode adds code whose lines all begin with the same prefix, so that they keep their indentation. The
// marker of a list that would begin the first line alone has a line of its own.
func (b *builder) prefixedCode(code, head string) {
	if slices.ContainsFunc(b.prefixes, func(p *prefix) bool { return p.first != p.rest }) {
		var marker strings.Builder
		for _, p := range b.prefixes {
			marker.WriteString(p.first)
			p.first = p.rest
		}
		b.add(atom{kind: whole, text: strings.TrimRight(marker.String(), " ")})
		b.add(atom{kind: newline, text: "\n"})
	}
	if head != "" {
		repeated := &mark{again: head}
		b.open(repeated)
		defer b.close(repeated)
	}
	b.beginLine()
	b.codeLines(code, func() {
		b.endLine()
		b.add(atom{kind: codeLine, text: "\n"})
		b.beginLine()
	})
	b.endLine()
}

// codeLines adds code unchanged, without the white space at the ends of lines. It calls end between two lines.
func (b *builder) codeLines(code string, end func()) {
	for i, line := range strings.Split(code, "\n") {
		if i > 0 {
			end()
		}
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		b.atoms = append(b.atoms, b.scan(line, false)...)
	}
}

func isLanguage(info string) bool {
	return len(info) <= 32 && !strings.ContainsFunc(info, unicode.IsSpace) && !strings.ContainsAny(info, "`<>&")
}

func (b *builder) raw(lines *text.Segments) string { return string(lines.Value(b.source)) }
