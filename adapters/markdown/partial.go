package markdown

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// minPartial is the smallest limit of FormatPartial. The lines that divide a code
// fence always fit into it.
const minPartial = 1024

// PartialOptions configures FormatPartial.
type PartialOptions struct {
	// Limit is the maximum length of a post, in UTF-16 units, or in Characters. A limit
	// below 1024 counts as 1024.
	Limit int
	// Characters counts the Unicode characters of a post instead of its UTF-16 units.
	Characters bool
	// Blocks is the maximum number of paragraphs, headings, lists, tables and code blocks of a post;
	// 0 means no maximum.
	Blocks int
	// Mentions are the tokens that keep their effect, such as "<@U06STGBF4Q0>".
	Mentions []string
	// Backticks is for a platform whose only fence is three backticks: each fence becomes one, its lines lose the
	// indentation of the fence, and no such run is within it.
	Backticks bool
	// Done means that no more text follows.
	Done bool
}

// FormatPartial formats the first post of a text that may still grow. It is for a
// platform that renders markdown itself and reads tokens in it as Slack does:
// https://docs.slack.dev/reference/block-kit/blocks/markdown-block.
// If the post is full, rest is the text of the following posts. Otherwise, rest is
// the text.
//
// The text stays as it is, with these exceptions. A zero-width space disables each
// token that is not one of the mentions, and each link whose scheme is not http, https or
// mailto. It does so in code too, because Slack does not document where it reads tokens. A
// link definition that would hide text is disabled the same way. An image becomes a link,
// because a client that loads an image sends its address to a stranger. Invalid UTF-8 and
// U+0000 become U+FFFD, and every line ends with \n. If a post ends
// inside a code fence, emphasis or code, the post closes it, and rest opens it again, and within a line of
// a quote, rest begins with the marks of the quote. White space
// is dropped if a post would contain nothing else, and at such an end.
//
// The shown text of a longer text begins with the shown text of a shorter one. The
// end of a post depends on the text alone: after three quarters of the limit at the end
// of a paragraph, later at the end of a line, then of a word. A suffix whose meaning
// depends on further text is held back: a possible token, a line that may be a code
// fence, an incomplete character.
func FormatPartial(text string, options PartialOptions) (shown, rest string, full bool) {
	p := formatPartial(text, options)
	if !p.full {
		return p.shown(), text, false
	}
	return p.shown(), p.reopen + p.text[p.at:] + p.held, true
}

// partial writes one post.
type partial struct {
	PartialOptions
	text string // clean
	held string // the end of the text, if that is not a whole character
	at   int    // the number of bytes of text that are written
	out  []byte
	size int // of out, in UTF-16 units

	newLine   bool // a line begins at at
	lineStart int  // where the current line begins
	parted    bool // the line before ended a paragraph or a fence
	headed    bool // the line before is a heading
	blocks    int  // the number of blocks that have begun
	spaced    bool // the last character is white space within a line
	solid     int  // the post cannot end before this byte of text
	opened    int  // where the first line of the last fence ends
	headLines int  // the lines of a table so far, or of a fence
	tableHead string
	fence     *fence
	closing   *fence    // that is open before the line
	marks     []openRun // open at at, outside of a fence
	behind    []openRun // marks behind the next characters
	changes   bool      // the next characters change the marks

	full          bool
	close, reopen string // the lines that divide a fence at the post's end, or the signs of its marks
}

func formatPartial(text string, options PartialOptions) *partial {
	options.Limit = max(options.Limit, minPartial)
	whole := len(text)
	if !options.Done {
		whole = wholeText(text)
	}
	p := &partial{PartialOptions: options, text: clean(text[:whole]), held: text[whole:], newLine: true}
	visible := strings.TrimLeftFunc(p.text, unicode.IsSpace)
	if visible == "" {
		return p
	}
	if before := len(p.text) - len(visible); p.units(p.text[:before]) > p.Limit/4 {
		p.at = before
	}
	p.out = make([]byte, 0, min(len(visible), p.Limit)+fenceRoom)
	p.run()
	return p
}

// wholeText returns the length of s without an incomplete character at the end. A \r
// may become a \r\n.
func wholeText(s string) int {
	if strings.HasSuffix(s, "\r") {
		return len(s) - 1
	}
	for i := len(s) - 1; i >= max(0, len(s)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				return i
			}
			break
		}
	}
	return len(s)
}

// shown returns the post. A post of white space alone is empty.
func (p *partial) shown() string {
	out := p.out
	if !p.full && !p.Done {
		out = p.body() // the next text may close the marks
	}
	if strings.TrimSpace(string(out)) == "" {
		return ""
	}
	return string(out) + p.close
}

// run writes until the text or the post ends, or until it needs more text.
func (p *partial) run() {
	for p.at < len(p.text) && (!p.newLine || p.beginLine()) && p.at < len(p.text) {
		whole, known := p.undivided()
		if !known {
			break
		}
		if whole > 0 && p.size+p.units(p.text[p.at:p.at+whole])+wholeRoom > p.limit() && len(p.out) > 0 && !p.isNew() {
			p.end()
			break
		}
		p.solid = max(p.solid, p.at+whole)
		out, n := p.next()
		if n == 0 {
			break
		}
		if p.endsBefore(out) {
			if strings.TrimSpace(p.text[p.at:]) != "" { // white space begins no post
				p.end()
			}
			break
		}
		p.newLine, p.spaced = out == "\n", out == " " || out == "\t"
		p.write(out)
		p.at += n
		if p.changes {
			p.marks, p.changes = p.behind, false
		}
	}
	if p.Done && !p.full {
		p.close, _ = p.divide()
	}
}

// units returns the length of a text in the unit of the limit.
func (p *partial) units(s string) int {
	if p.Characters {
		return utf8.RuneCountInString(s)
	}
	return units(s)
}

// next returns the output for the next n bytes of the text. If it depends on text that
// is still missing, n is 0.
func (p *partial) next() (out string, n int) {
	s := p.text[p.at:]
	switch s[0] {
	case '*', '_', '~', '`':
		return p.signs(s)
	case '<', '&':
		return p.token(s)
	case ']':
		return p.target(s)
	case '!':
		return p.image(s)
	}
	return p.cluster(s)
}

func (p *partial) write(s string) {
	p.out = append(p.out, s...)
	p.size += p.units(s)
}

// beginLine reads the beginning of a line. It returns false if the post ends before the
// line, or if the kind of the line is still unknown.
func (p *partial) beginLine() bool {
	line, known := p.line()
	if !known {
		return false
	}
	if p.fence.leftBy(line) {
		p.fence, p.parted = nil, true
	}
	var opens *fence
	if p.fence == nil {
		opens = openFence(line)
	}
	heads := p.fence == nil && heading.MatchString(line)
	if heads && !p.Done && !strings.ContainsAny(line, " \t\n") { // it may be a word
		return false
	}
	p.closing = p.fence
	closes, blank := p.fence.closedBy(line), strings.Trim(line, " \t\n") == ""
	if p.fence != nil || opens != nil || startsBlock(line) {
		p.marks, p.behind = nil, nil
	}
	if !blank && !closes && p.endsBeforeLine(opens != nil) {
		p.end()
		return false
	}
	if !blank && p.fence == nil && (p.parted || p.headed || heads || opens != nil || len(p.out) == 0) {
		if p.blocks++; p.Blocks > 0 && p.blocks > p.Blocks {
			p.end()
			return false
		}
	}
	p.headed = heads
	p.newLine, p.lineStart = false, p.at
	p.parted = closes || blank && p.fence == nil
	if opens != nil || closes {
		p.fence, p.solid = opens, p.at+len(line)
		p.opened = p.solid
	}
	p.noteTable(opens != nil || closes)
	if p.Backticks {
		p.writeFence(line, opens, closes)
	}
	return true
}

// heading matches a line that is a heading, or its beginning.
var heading = regexp.MustCompile(`^ {0,3}#{1,6}(?:[ \t\n]|$)`)

// endsBeforeLine reports whether the post ends before a line with text.
func (p *partial) endsBeforeLine(opens bool) bool {
	switch {
	case len(p.out) == 0 || p.isNew():
		return false
	case opens && p.size+openRoom > p.Limit:
		return true
	case p.fence == nil && (p.parted || opens):
		return p.mayEnd(4)
	}
	return p.mayEnd(2)
}

// mayEnd reports whether the post may end at the end of a paragraph or a line: if at
// most so many sixteenths of its limit are left.
func (p *partial) mayEnd(sixteenths int) bool {
	return p.size >= p.limit()*(16-sixteenths)/16
}

// endsBefore reports whether the post ends before a character or a token within a line.
func (p *partial) endsBefore(out string) bool {
	switch {
	case p.at < p.solid || len(p.out) == 0 || p.isNew():
		return false
	case out == "\n" && p.fence != nil && p.inLine():
		return false // fenceRoom has room for it, and the next line may close the fence
	case p.size+p.units(out) > p.limit():
		return true
	case out == "\n" || out == " " || out == "\t":
		return false
	}
	return p.spaced && p.size >= p.limit()*15/16
}

// limit is the maximum size of the post without the end of a fence, or of the marks behind the next
// characters.
func (p *partial) limit() int {
	if p.fence != nil {
		return p.Limit - fenceRoom
	}
	return p.Limit - marksRoom(p.behind)
}

// isNew reports whether the post has no line of the open fence yet but the first.
func (p *partial) isNew() bool { return p.fence != nil && p.at <= p.opened }

func (p *partial) end() {
	p.full = true
	if p.fence == nil {
		p.endMarks()
	} else {
		p.close, p.reopen = p.divide()
	}
	p.repeatHead()
}

// inLine reports whether the last line of the post has no line end.
func (p *partial) inLine() bool { return len(p.out) > 0 && p.out[len(p.out)-1] != '\n' }
