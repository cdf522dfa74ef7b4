package markdown

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// wholeRoom is the room for additions to a text that is not divided.
const wholeRoom = 16

var (
	// wholeLink matches an address or a link.
	wholeLink = regexp.MustCompile("^(?:<?https?://[^\\s<>`]+>?|!?\\[[^\\[\\]<>`\\n]*\\]\\([^\\s()<>]*(?:\\([^\\s()<>]*\\)[^\\s()<>]*)?\\))")
	// beginsLink matches a text that may continue as one.
	beginsLink = regexp.MustCompile("^(?:<?(?:h|ht|htt|https?|https?:/?|https?://[^\\s<>`]*)|<|!?\\[[^\\[\\]<>`\\n]*(?:\\](?:\\([^\\s<>]*)?)?)$")
	// tableRule matches the second line of a table: of CommonMark, or of aligned text.
	tableRule = regexp.MustCompile(`^(?:[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+(?:[ \t]*:?-+:?)?|-+(?:\+-+)+)[ \t]*$`)
)

// undivided returns the length of a following text that must not be divided: an address, a link, a row of a table, a line of
// code. It is 0 if there is none, if it would fill half a post, or if it surely fits. known is false if more text can change
// that.
func (p *partial) undivided() (n int, known bool) {
	most := p.Limit / 2
	if p.at < p.solid || p.size+most+wholeRoom <= p.limit() {
		return 0, true
	}
	s := p.text[p.at:]
	head := s[:min(len(s), most)]
	open := len(head) == len(s) && !p.Done
	begins := !p.inLine()
	if p.fence != nil || isRow(head) && begins {
		end := strings.IndexByte(head, '\n')
		switch {
		case !begins:
			return 0, true
		case end < 0 && len(head) < len(s):
			return 0, true
		case end < 0:
			return len(s), !open
		}
		return end, true
	}
	before, _ := utf8.DecodeLastRuneInString(p.text[:p.at])
	inCode := len(p.marks) > 0 && p.marks[len(p.marks)-1].sign == '`'
	if strings.IndexByte("h<[!", s[0]) < 0 || inCode || p.at > 0 && isWordRune(before) {
		return 0, true
	}
	link := wholeLink.FindString(head)
	switch {
	case strings.Contains(link, "&lt") || strings.Contains(link, "&#"):
		return 0, true
	case link == "" || len(link) == len(head):
		return len(link), !open || !beginsLink.MatchString(head) && link == ""
	}
	return len(link), true
}

// noteTable notes the head of a table whose lines begin at p.at. In a fence, the post cannot end before its first row.
func (p *partial) noteTable(opens bool) {
	line, _ := cutLine(p.text[p.at:])
	switch {
	case opens || p.fence == nil && !isRow(line):
		p.headLines, p.tableHead = 0, ""
		return
	case p.headLines == 0:
		p.tableHead = line
	case p.headLines == 1:
		if p.tableHead += line; !tableRule.MatchString(strings.TrimSuffix(line, "\n")) || p.units(p.tableHead) > p.Limit/4 {
			p.tableHead = ""
		} else if p.fence != nil {
			p.opened = p.at + len(line)
		}
	}
	p.headLines++
}

// repeatHead lets the next post begin with the head of the table that the post's end divides.
func (p *partial) repeatHead() {
	if p.headLines > 1 && !p.inLine() && (p.fence != nil || isRow(p.text[p.at:])) {
		p.reopen += p.tableHead
	}
}

// inAddress reports whether a text ends within an address that goes on.
func inAddress(before, after string) bool {
	before = before[max(0, len(before)-maxLinked):]
	before = before[strings.LastIndexAny(before, " \t\n<>()[]\"`*")+1:]
	next, _ := utf8.DecodeRuneInString(after)
	return (strings.HasPrefix(before, "http://") || strings.HasPrefix(before, "https://")) && (isWordRune(next) || strings.ContainsRune("/=&%_?#", next))
}
