package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// inlines writes a block's or a span's content. Neighbouring texts are put
// together first, since the parser ends one at every sign that might have begun
// something.
func (b *builder) inlines(parent node) {
	var raw []byte
	flush := func() {
		b.text(string(raw))
		raw = raw[:0]
	}
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		t, isText := n.(*ast.Text)
		if !isText {
			flush()
			b.span(n)
			continue
		}
		raw = append(raw, t.Segment.Value(b.source)...)
		if t.SoftLineBreak() || t.HardLineBreak() {
			flush()
			b.breakLine()
		}
	}
	flush()
}

func (b *builder) span(n node) {
	switch n := n.(type) {
	case *ast.Emphasis:
		m := b.style.italic
		if n.Level == 2 {
			m = b.style.bold
		}
		b.within(m, func() { b.inlines(n) })
	case *extast.Strikethrough:
		b.within(b.style.strike, func() { b.inlines(n) })
	case *ast.CodeSpan:
		b.codeSpan(b.plain(n))
	case *ast.Link:
		b.link(b.plain(n), n.Destination)
	case *ast.Image:
		b.link(b.plain(n), n.Destination)
	case *ast.AutoLink:
		b.autoLink(n)
	case *ast.RawHTML:
		b.lines(string(n.Segments.Value(b.source)))
	case *ast.String:
		b.words(string(n.Value))
	default:
		b.inlines(n)
	}
}

// text writes what stands in the source as text. A mention whose bracket is
// escaped, or is an entity, is none.
func (b *builder) text(raw string) {
	if b.style.mention == nil {
		b.words(b.style.text(raw))
		return
	}
	from := 0
	for _, at := range b.style.mention.FindAllStringIndex(raw, -1) {
		before := raw[from:at[0]]
		if slashes := len(before) - len(strings.TrimRight(before, `\`)); slashes%2 == 1 {
			continue
		}
		b.words(b.style.text(before))
		b.add(atom{kind: whole, text: raw[at[0]:at[1]]})
		from = at[1]
	}
	b.words(b.style.text(raw[from:]))
}

// codeSpan writes code inside a line. A backtick can't stand inside one on
// every platform; such code stands as text.
func (b *builder) codeSpan(code string) {
	tick := b.style.code
	if tick == "" || strings.Contains(code, "`") || strings.TrimSpace(code) == "" {
		b.words(b.style.literal(code))
		return
	}
	pieces := b.scan(code, true)
	var content strings.Builder
	for _, p := range pieces {
		content.WriteString(p.text)
	}
	m := around(tick, false)
	pieces = append([]atom{{kind: opening, mark: m}}, pieces...)
	b.add(atom{kind: whole, text: tick + content.String() + tick, pieces: append(pieces, atom{kind: closing, mark: m})})
}

// link writes a link, or what is left of one that must not be one: its label and
// its address, as text.
func (b *builder) link(label string, destination []byte) {
	label = strings.Join(strings.Fields(label), " ")
	if raw := shown(string(destination)); !isLink(raw) {
		b.words(b.style.literal(plainLink(label, raw)))
		return
	}
	address := string(util.URLEscape(destination, true))
	pieces := b.cut(b.style.literal(plainLink(label, address)))
	b.add(atom{kind: whole, text: b.style.link(label, address), pieces: pieces})
}

// autoLink writes an address as it was typed: every platform finds it by itself,
// unless what follows would be taken for its end. In brackets CommonMark takes
// almost anything for an address; what is none is text, brackets and all.
func (b *builder) autoLink(n *ast.AutoLink) {
	label := string(n.Label(b.source))
	address := string(n.URL(b.source))
	isMail := n.AutoLinkType == ast.AutoLinkEmail
	switch {
	case isMail && strings.ContainsAny(label, "!#$&'*/=?^`{|}~"),
		!isMail && !isLink(address) && !strings.HasPrefix(strings.ToLower(address), "ftp:"):
		b.words(b.style.literal("<" + label + ">"))
	case !isMail && n.Protocol == nil && isLink(address) && b.runsOn(n):
		b.add(atom{kind: whole, text: b.style.link("", address), pieces: b.cut(label)})
	default:
		b.whole(label)
	}
}

// whole writes a text that is not to be cut.
func (b *builder) whole(s string) {
	pieces := b.cut(s)
	var text strings.Builder
	for _, p := range pieces {
		text.WriteString(p.text)
	}
	b.add(atom{kind: whole, text: text.String(), pieces: pieces})
}

// runsOn says whether text follows the node without white space.
func (b *builder) runsOn(n node) bool {
	if t, ok := n.NextSibling().(*ast.Text); ok {
		next := t.Segment.Value(b.source)
		return len(next) > 0 && !util.IsSpace(next[0])
	}
	return n.NextSibling() != nil
}

// plain is the content of a node without any mark, on one line.
func (b *builder) plain(parent node) string {
	var out strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			value := string(n.Segment.Value(b.source))
			if _, isCode := parent.(*ast.CodeSpan); isCode {
				out.WriteString(strings.ReplaceAll(value, "\n", " "))
				continue
			}
			out.WriteString(shown(value))
			if n.SoftLineBreak() || n.HardLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.AutoLink:
			out.Write(n.Label(b.source))
		case *ast.RawHTML:
			out.Write(n.Segments.Value(b.source))
		default:
			out.WriteString(b.plain(n))
		}
	}
	return out.String()
}
