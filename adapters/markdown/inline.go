package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// inlines adds the content of a block or a span. It joins neighbouring text nodes first,
// because the parser ends one at every character that might begin a span.
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
			if e, last := b.element(n); last != nil {
				if n = last; e.address != "" {
					b.link(strings.Trim(e.text, "*_~"), []byte(e.address))
				} else {
					b.lines(unescape(e.text))
				}
				continue
			}
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

// element returns what is shown instead of an element of HTML that begins with a node, and the last node of the element;
// nil if none begins there.
func (b *builder) element(n node) (e shown, last node) {
	raw, ok := n.(*ast.RawHTML)
	if !ok {
		return e, nil
	}
	begins := raw.Segments.At(0).Start
	e, length, _ := element(string(b.source[begins:min(len(b.source), begins+maxElement)]))
	if length == 0 {
		return e, nil
	}
	last = n
	for next := n.NextSibling(); next != nil; next = next.NextSibling() {
		if tag, ok := next.(*ast.RawHTML); ok && tag.Segments.At(0).Start < begins+length {
			last = next
		}
	}
	return e, last
}

func (b *builder) span(n node) {
	switch n := n.(type) {
	case *ast.Emphasis:
		m := b.style.italic
		if n.Level == 2 {
			m = b.style.bold
		}
		literal := b.literalMark(n)
		b.words(literal)
		b.within(m, func() { b.inlines(n) })
		b.words(literal)
	case *extast.Strikethrough:
		b.within(b.style.strike, func() { b.inlines(n) })
	case *ast.CodeSpan:
		b.codeSpan(b.plain(n, false))
	case *ast.Link:
		b.link(b.plain(n, false), n.Destination)
	case *ast.Image:
		b.link(b.plain(n, false), n.Destination)
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

// text adds a text of the source. A token whose bracket is escaped, or is a character
// reference, is not a mention.
func (b *builder) text(raw string) {
	if b.style.literal {
		from := 0
		for _, at := range formula.FindAllStringIndex(raw, -1) {
			b.words(unescape(raw[from:at[0]]))
			b.words(raw[at[0]:at[1]])
			from = at[1]
		}
		b.words(unescape(raw[from:]))
		return
	}
	from := 0
	for _, at := range b.style.mention.FindAllStringIndex(raw, -1) {
		before := raw[from:at[0]]
		if slashes := len(before) - len(strings.TrimRight(before, `\`)); slashes%2 == 1 {
			continue
		}
		b.words(unescape(before))
		b.add(atom{kind: whole, text: raw[at[0]:at[1]]})
		from = at[1]
	}
	b.words(unescape(raw[from:]))
}

// codeSpan adds a code span. Not every platform allows a backtick inside one, so code with
// a backtick becomes text.
func (b *builder) codeSpan(code string) {
	tick := b.style.code
	if tick == "" || strings.Contains(code, "`") || strings.TrimSpace(code) == "" {
		b.words(code)
		return
	}
	pieces := b.scan(code, true)
	text := tick + joined(pieces) + tick
	m := &mark{open: tick, again: tick, close: tick}
	pieces = append([]atom{{kind: opening, mark: m}}, pieces...)
	b.add(atom{kind: whole, text: text, pieces: append(pieces, atom{kind: closing, mark: m})})
}

// link adds a link. If its scheme is not allowed, the label and the address become text.
func (b *builder) link(label string, destination []byte) {
	label = strings.Join(strings.Fields(label), " ")
	if raw := unescape(string(destination)); !isLink(raw) {
		b.words(plainLink(label, raw))
		return
	}
	address := string(util.URLEscape(destination, true))
	pieces := b.cut(plainLink(label, address))
	b.add(atom{kind: whole, text: b.style.link(label, address), pieces: pieces})
}

// autoLink adds an address as the author typed it, because every platform recognises an
// address. Only an address directly before other text becomes a link with an explicit
// end. CommonMark accepts almost any text in brackets as an address; if the text is no
// address, it stays a text with its brackets.
func (b *builder) autoLink(n *ast.AutoLink) {
	label := string(n.Label(b.source))
	address := string(n.URL(b.source))
	isMail := n.AutoLinkType == ast.AutoLinkEmail
	switch {
	case isMail && strings.ContainsAny(label, "!#$&'*/=?^`{|}~"),
		!isMail && !isLink(address) && !strings.HasPrefix(strings.ToLower(address), "ftp:"):
		b.words("<" + label + ">")
	case !isMail && n.Protocol == nil && isLink(address) && b.runsOn(n):
		b.add(atom{kind: whole, text: b.style.link("", address), pieces: b.cut(label)})
	default:
		b.whole(label)
	}
}

// whole adds a text that must not be divided.
func (b *builder) whole(s string) {
	pieces := b.cut(s)
	b.add(atom{kind: whole, text: joined(pieces), pieces: pieces})
}

// joined returns the text of atoms.
func joined(atoms []atom) string {
	var text strings.Builder
	for _, a := range atoms {
		text.WriteString(a.text)
	}
	return text.String()
}

// runsOn reports whether text follows the node without white space.
func (b *builder) runsOn(n node) bool {
	if t, ok := n.NextSibling().(*ast.Text); ok {
		next := t.Segment.Value(b.source)
		return len(next) > 0 && !util.IsSpace(next[0])
	}
	return n.NextSibling() != nil
}

// plain returns the content of a node without marks, on one line. With addresses, the address of
// a link or an image follows its label.
func (b *builder) plain(parent node, addresses bool) string {
	var out strings.Builder
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if e, last := b.element(n); last != nil {
			if n = last; e.address != "" && addresses {
				out.WriteString(plainLink(e.text, e.address))
			} else {
				out.WriteString(strings.ReplaceAll(unescape(e.text), "\n", " "))
			}
			continue
		}
		switch n := n.(type) {
		case *ast.Text:
			value := string(n.Segment.Value(b.source))
			if _, isCode := parent.(*ast.CodeSpan); isCode {
				out.WriteString(strings.ReplaceAll(value, "\n", " "))
				continue
			}
			out.WriteString(unescape(value))
			if n.SoftLineBreak() || n.HardLineBreak() {
				out.WriteByte(' ')
			}
		case *ast.AutoLink:
			out.Write(n.Label(b.source))
		case *ast.RawHTML:
			out.Write(n.Segments.Value(b.source))
		case *ast.Link:
			out.WriteString(b.plainLink(n, n.Destination, addresses))
		case *ast.Image:
			out.WriteString(b.plainLink(n, n.Destination, addresses))
		default:
			out.WriteString(b.plain(n, addresses))
		}
	}
	return out.String()
}

func (b *builder) plainLink(n node, destination []byte, addresses bool) string {
	label := b.plain(n, false)
	if !addresses {
		return label
	}
	return plainLink(label, unescape(string(destination)))
}
