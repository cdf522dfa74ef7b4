package markdown

import (
	"slices"
	"strings"
)

const (
	// lineHeld is how much of a line may be needed to know what it is, in bytes. What
	// is still not clear then is made plain text.
	lineHeld = 200
	// fenceRoom is kept free inside a fence, for the line that ends it.
	fenceRoom = lineHeld + 56
	// openRoom is what a fence's first line and fenceRoom can need.
	openRoom = 2*lineHeld + fenceRoom
	// maxInfo bounds the info string that a fence is opened again with, in bytes.
	maxInfo = 64
)

// blocks follows the blocks of a text, line by line, as far as one must know them to
// say where a code fence begins and ends.
// https://spec.commonmark.org/0.31.2/#container-blocks
type blocks struct {
	in        []container // that are open, from the outside
	fence     *fence      // that is open
	paragraph bool        // is open: a line without marks belongs to it
	// doubt says that another reader may have seen other fences so far.
	doubt bool
}

// container is a quote, or a list's item.
type container struct {
	quote bool
	width int // of an item: its lines are indented by so many columns
}

// fence is a code fence.
type fence struct {
	sign   byte // ` or ~
	signs  int
	indent int // within its container
	info   string
	// sure says that every reader sees the fence, and its end, where we do.
	sure bool
}

// line is what one line does.
type line struct {
	in        []container // that it stands in
	opens     *fence
	closes    bool // the fence that is open
	leaves    bool // the fence that is open, with the container that the fence is in
	blank     bool
	paragraph bool // leaves one open
	bracket   bool // its text begins with a [
	tag       bool // its text begins with a <
	deep      bool // is not clear, and must be made plain
	solid     int  // how many bytes of it may not be divided
}

// structural are the signs that a line's meaning may depend on, as long as there are
// no others.
const structural = " \t>`~-+*_=#.)0123456789"

// look says what the line at the beginning of rest does; false where that depends on
// what follows rest.
func (b *blocks) look(rest string, done bool) (line, bool) {
	text := rest[:min(len(rest), lineHeld)]
	end := strings.IndexAny(text, "\n\r")
	whole, length := end >= 0, len(text)
	if whole {
		text, length = text[:end], end+1
	}
	whole = whole || done && len(rest) < lineHeld
	long := !whole && len(text) == lineHeld
	plain := strings.Trim(text, structural) == ""
	if !whole && !long && plain {
		return line{}, false
	}
	if long && plain {
		return line{deep: true, paragraph: true, leaves: b.fence != nil && len(b.in) > 0}, true
	}
	c := cursor{line: text}
	l := b.read(&c)
	switch {
	case l.opens != nil || l.closes:
		l.solid = length
	case b.fence != nil && !l.leaves:
		l.solid = c.at
	}
	if l.opens != nil && !whole {
		if !long {
			return line{}, false
		}
		l = line{deep: true, paragraph: true, leaves: l.leaves}
	}
	return l, true
}

// read reads a line whose structure is known.
func (b *blocks) read(c *cursor) line {
	matched := 0
	for matched < len(b.in) && c.enter(b.in[matched]) {
		matched++
	}
	var l line
	if b.fence != nil {
		if matched == len(b.in) {
			l.in, l.blank, l.closes = b.in, c.blank(), b.fence.closedBy(c)
			return l
		}
		l.leaves = true
	}
	l.in = b.in[:matched:matched]
	for c.open(&l.in, b.paragraph && matched == len(b.in)) {
		continue
	}
	text := strings.TrimLeft(c.line[c.at:], " \t")
	l.bracket, l.tag = strings.HasPrefix(text, "["), strings.HasPrefix(text, "<")
	switch {
	case text == "":
		l.blank = true
	case c.indent() > 3 && !b.paragraph: // code
	case c.indent() > 3:
		l.paragraph = true
	case isHeading(text), isRule(text), strings.Trim(text, "= \t") == "" && b.paragraph:
	default:
		l.opens = openFence(text, c.indent())
		l.paragraph = l.opens == nil
	}
	if l.paragraph && b.paragraph && b.fence == nil && len(l.in) == matched {
		l.in = b.in // it goes on, without the marks too
	}
	return l
}

// enter makes the line the current one.
func (b *blocks) enter(l line) {
	if l.opens != nil {
		l.opens.sure = !b.doubt && len(l.in) == 0 && l.opens.indent == 0
		b.doubt = b.doubt || !l.opens.sure
	}
	b.doubt = b.doubt || b.fence == nil && l.tag
	switch {
	case l.opens != nil:
		b.fence = l.opens
	case l.closes, l.leaves:
		b.fence = nil
	}
	b.in, b.paragraph = l.in, l.paragraph
}

func (b *blocks) isCode() bool { return b.fence != nil }

// fenceLines end the fence that is open and open it again in another post; none is
// empty. What stands around it comes along: a quote's mark, an item's indentation.
func (b *blocks) fenceLines(inLine bool) (closing, opening string) {
	f := b.fence
	if f == nil {
		return "", ""
	}
	signs := strings.Repeat(string(f.sign), f.signs)
	closing, opening = b.marks()
	info := f.info
	if len(info) > maxInfo {
		info = ""
	}
	opening += signs + info + "\n"
	if inLine {
		return "\n" + closing + signs, opening + closing
	}
	return closing + signs, opening
}

// marks are what a line of the fence begins with in this post, and the fence's first
// line in another one. A fence that stands far in needs list items to stand in.
func (b *blocks) marks() (here, next string) {
	width := 0
	for i, c := range b.in {
		if c.quote {
			here, next, width = here+"> ", next+"> ", 0
			continue
		}
		here += strings.Repeat(" ", c.width)
		width += c.width
		switch last := i+1 == len(b.in); {
		case last && width+b.fence.indent <= 3:
			return here, next + strings.Repeat(" ", width+b.fence.indent)
		case last:
			return here, next + item(width)
		case b.in[i+1].quote:
			next += item(width)
		}
	}
	return here, next + strings.Repeat(" ", b.fence.indent)
}

// item begins list items whose text is indented by so many columns, two or more.
func item(width int) string {
	marks := ""
	for ; width > 5; width -= 2 {
		marks += "- "
	}
	return marks + "-" + strings.Repeat(" ", width-1)
}

func openFence(text string, indent int) *fence {
	f := &fence{sign: text[0], indent: indent}
	if f.sign != '`' && f.sign != '~' {
		return nil
	}
	info := strings.TrimLeft(text, text[:1])
	f.signs = len(text) - len(info)
	if f.signs < 3 || f.sign == '`' && strings.Contains(info, "`") {
		return nil
	}
	f.info = strings.TrimSpace(info)
	return f
}

func (f *fence) closedBy(c *cursor) bool {
	text := strings.Trim(c.line[c.at:], " \t")
	return c.indent() <= 3 && len(text) >= f.signs && strings.Trim(text, string(f.sign)) == ""
}

func isHeading(text string) bool {
	title := strings.TrimLeft(text, "#")
	level := len(text) - len(title)
	return level >= 1 && level <= 6 && (title == "" || title[0] == ' ' || title[0] == '\t')
}

// isRule tells a thematic break.
func isRule(text string) bool {
	if !strings.ContainsAny(text[:1], "*-_") {
		return false
	}
	return strings.Count(text, text[:1]) >= 3 && strings.Trim(text, text[:1]+" \t") == ""
}

// cursor walks over what stands before a line's text, in columns.
type cursor struct {
	line    string
	at, col int
	// over is how many columns of a tab were not walked over.
	over int
}

// indent is how many columns of white space come next.
func (c *cursor) indent() int {
	n := c.over
	for i, col := c.at, c.col; i < len(c.line); i++ {
		width := 1
		switch c.line[i] {
		case ' ':
		case '\t':
			width = 4 - col%4
		default:
			return n
		}
		n, col = n+width, col+width
	}
	return n
}

// skip walks over n columns of white space.
func (c *cursor) skip(n int) {
	for n -= c.over; n > 0 && c.at < len(c.line); c.at++ {
		width := 1
		if c.line[c.at] == '\t' {
			width = 4 - c.col%4
		}
		n, c.col = n-width, c.col+width
	}
	c.over = max(-n, 0)
}

// sign is the first sign behind the white space; 0 for none.
func (c *cursor) sign() byte {
	if text := strings.TrimLeft(c.line[c.at:], " \t"); text != "" {
		return text[0]
	}
	return 0
}

func (c *cursor) blank() bool { return c.sign() == 0 }

// take walks over white space and n signs.
func (c *cursor) take(n int) {
	c.skip(c.indent())
	c.at, c.col = c.at+n, c.col+n
}

// enter walks over what a line of the container begins with; false where it is none.
func (c *cursor) enter(in container) bool {
	switch {
	case in.quote:
		return c.quote()
	case c.indent() >= in.width:
		c.skip(in.width)
		return true
	}
	return c.blank()
}

func (c *cursor) quote() bool {
	if c.indent() > 3 || c.sign() != '>' {
		return false
	}
	c.take(1)
	c.skip(min(c.indent(), 1))
	return true
}

// open walks over the mark of a new container, and adds it. Within a paragraph not
// all of them begin one.
func (c *cursor) open(in *[]container, paragraph bool) bool {
	if c.indent() > 3 || c.blank() || isRule(strings.TrimLeft(c.line[c.at:], " \t")) {
		return false
	}
	if c.quote() {
		*in = append(slices.Clip(*in), container{quote: true})
		return true
	}
	text := strings.TrimLeft(c.line[c.at:], " \t")
	n := marker(text)
	if n == 0 {
		return false
	}
	empty := strings.Trim(text[n:], " \t") == ""
	if paragraph && (empty || n > 1 && text[:n-1] != "1") {
		return false
	}
	width := c.indent() + n
	c.take(n)
	spaces := c.indent()
	if empty || spaces > 4 {
		spaces = 1
	}
	c.skip(min(spaces, c.indent()))
	*in = append(slices.Clip(*in), container{width: width + spaces})
	return true
}

// marker is the length of a list item's mark; 0 for none.
func marker(text string) int {
	n := 1
	if !strings.ContainsAny(text[:1], "-+*") {
		n = len(text) - len(strings.TrimLeft(text, "0123456789"))
		if n == 0 || n > 9 || n == len(text) || (text[n] != '.' && text[n] != ')') {
			return 0
		}
		n++
	}
	if n < len(text) && text[n] != ' ' && text[n] != '\t' {
		return 0
	}
	return n
}
