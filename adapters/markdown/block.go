package markdown

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// rule stands for a thematic break.
const rule = "———"

// blocks writes a container's blocks with empty lines between them.
func (b *builder) blocks(parent node) {
	b.children(parent, func(node) kind { return blank }, b.block)
}

// children writes each child of parent, all but the first after the separator
// that between chooses for it.
func (b *builder) children(parent node, between func(node) kind, write func(node)) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.PreviousSibling() != nil {
			b.separate(between(n))
		}
		write(n)
	}
}

// separate ends a block. In a quote lines follow one another, since an empty one
// would end it.
func (b *builder) separate(k kind) {
	for _, p := range b.prefixes {
		if p.quote {
			k = newline
		}
	}
	if k == blank {
		b.add(atom{kind: blank, text: "\n\n"})
		return
	}
	b.add(atom{kind: newline, text: "\n"})
}

func (b *builder) block(n node) {
	switch n := n.(type) {
	case *ast.Heading:
		b.heading(n)
	case *ast.ThematicBreak:
		b.oneLine(func() { b.words(rule) })
	case *ast.CodeBlock:
		b.code(b.raw(n.Lines()), "")
	case *ast.FencedCodeBlock:
		info := ""
		if n.Info != nil {
			info = shown(string(n.Info.Segment.Value(b.source)))
		}
		b.code(b.raw(n.Lines()), strings.TrimSpace(info))
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

// oneLine writes content that begins a line and may break it.
func (b *builder) oneLine(content func()) {
	b.beginLine()
	content()
	b.endLine()
}

// indented writes content with a prefix before its lines.
func (b *builder) indented(p *prefix, content func()) {
	b.prefixes = append(b.prefixes, p)
	content()
	b.prefixes = b.prefixes[:len(b.prefixes)-1]
}

// heading writes a heading of its own where the dialect has one, and bold text
// elsewhere.
func (b *builder) heading(n *ast.Heading) {
	if n.Level <= b.style.headings {
		hashes := strings.Repeat("#", n.Level) + " "
		b.indented(&prefix{hashes, hashes, false}, func() { b.oneLine(func() { b.inlines(n) }) })
		return
	}
	b.oneLine(func() { b.within(b.style.bold, func() { b.inlines(n) }) })
}

func (b *builder) list(n *ast.List) {
	number := n.Start
	b.children(n, func(node) kind { return gap(n) }, func(item node) {
		marker := b.style.bullet
		if n.IsOrdered() {
			marker = strconv.Itoa(number) + ". "
			number++
		}
		b.indented(&prefix{marker, b.style.indent, false}, func() { b.item(n, item) })
	})
}

// gap is what stands between the parts of a list.
func gap(n *ast.List) kind {
	if n.IsTight {
		return newline
	}
	return blank
}

// item writes an item's blocks; a list inside it follows its text directly.
func (b *builder) item(list *ast.List, item node) {
	b.children(item, func(n node) kind {
		if _, nested := n.(*ast.List); nested {
			return newline
		}
		return gap(list)
	}, b.block)
}

// code writes a code block between fences. Those stand without the prefixes of
// quotes and lists: no platform reads them together. An info string that can't
// be a language is text that somebody put there.
func (b *builder) code(code, info string) {
	code = strings.TrimRight(code, "\n")
	s := b.style
	head := "\n"
	switch {
	case info == "":
	case !isLanguage(info):
		code = info + "\n" + code
	case s.language:
		head = info + "\n"
	}
	if s.fence == "" {
		b.oneLine(func() { b.codeLines(code) })
		return
	}
	fence := &mark{open: s.fence + head, again: s.fence + head, close: "\n" + s.fence}
	b.open(fence)
	b.codeLines(apart(code, 3))
	b.close(fence)
}

// codeLines writes code as it stands, but for white space at a line's end.
func (b *builder) codeLines(code string) {
	for i, line := range strings.Split(code, "\n") {
		if i > 0 {
			b.add(atom{kind: codeLine, text: "\n"})
		}
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		b.atoms = append(b.atoms, b.scan(line, false)...)
	}
}

func isLanguage(info string) bool {
	return len(info) <= 32 && !strings.ContainsFunc(info, unicode.IsSpace) && !strings.ContainsAny(info, "`<>&")
}

func (b *builder) raw(lines *text.Segments) string { return string(lines.Value(b.source)) }
