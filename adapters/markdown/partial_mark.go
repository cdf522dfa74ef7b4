package markdown

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

const (
	// maxMarks bounds the open marks of a post. Further ones are text.
	maxMarks = 8
	// maxRun bounds the signs of a run that opens or closes emphasis.
	maxRun = 3
	// clusterRoom is the number of bytes that tell where a grapheme ends. A longer one is cut.
	clusterRoom = 128
)

// openRun is a run of signs that opens emphasis, or code, in the paragraph of the post's end.
type openRun struct {
	sign      byte
	count     int
	text, out int // where the run begins, in the text and in the post
}

func (r openRun) signs() string { return strings.Repeat(string(r.sign), r.count) }

// blockStart matches the text of a line that ends the paragraph before it, behind its linePrefix.
var blockStart = regexp.MustCompile(`^(?:#{1,6}[ \t]|[-+*][ \t]|[0-9]{1,9}[.)][ \t]|(?:[-*][ \t]*){3,}$)`)

// startsBlock reports whether a line ends the paragraph before it.
func startsBlock(line string) bool {
	text := strings.TrimLeft(strings.TrimSuffix(line, "\n"), " \t>")
	switch {
	case text == "" || text[0] == '|':
		return true
	case strings.IndexByte("#-+*0123456789", text[0]) < 0: // nearly every line
		return false
	}
	return blockStart.MatchString(text)
}

// linePrefix matches the beginning of a line that is no part of its text.
var linePrefix = regexp.MustCompile(`^[ \t>]*`)

// signs writes a run of signs that may open or close emphasis or code, and notes in p.behind which marks
// are open behind it. https://spec.commonmark.org/0.31.2/#emphasis-and-strong-emphasis
func (p *partial) signs(s string) (out string, n int) {
	n = runOf(s)
	before := p.text[:p.at]
	inside := strings.HasSuffix(before, s[:1]) // of a longer run, or behind an escaped sign
	isEscaped := (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
	inCode := len(p.marks) > 0 && p.marks[len(p.marks)-1].sign == '`'
	most := maxRun
	if s[0] == '`' {
		most = maxTicks
	}
	switch {
	case p.Backticks && p.fence != nil && s[0] == '`' && p.at >= p.opened:
		if n == len(s) && !p.Done {
			return "", 0
		}
		return splitBackticks(s[:n], len(backticks)), n
	case p.fence != nil, p.at < p.solid, inside, n > most, isEscaped && !inCode, inCode && s[0] != '`':
		return s[:1], 1
	case n == len(s) && !p.Done:
		return "", 0
	}
	if s[0] != '`' && !inCode && inAddress(before, s[n:]) {
		return s[:n], n
	}
	p.behind, p.changes = p.marksBehind(s[0], n, before, s[n:]), true
	if s[0] == '`' {
		return s[:n], n
	}
	// A platform has CommonMark's rules. A zero-width space is neither space nor punctuation to them.
	opens, closes := flankingStrictly(s[0], before, s[n:])
	switch was, is := marksRoom(p.marks), marksRoom(p.behind); {
	case is > was && !opens:
		return s[:n] + zeroWidth, n
	case is < was && !closes:
		return zeroWidth + s[:n], n
	}
	return s[:n], n
}

// runOf returns the length of the run of one sign with which s begins. It reads no more than tells that a
// run is too long to mean anything.
func runOf(s string) int {
	head := s[:min(len(s), maxTicks+1)]
	return len(head) - len(strings.TrimLeft(head, s[:1]))
}

// marksBehind returns the marks that are open behind a run of n signs.
func (p *partial) marksBehind(sign byte, n int, before, after string) []openRun {
	marks := append([]openRun(nil), p.marks...)
	opened := openRun{sign, n, p.at, len(p.out)}
	if sign == '`' {
		switch last := len(marks) - 1; {
		case last >= 0 && marks[last].sign == '`' && marks[last].count == n:
			return marks[:last]
		case last >= 0 && marks[last].sign == '`' || len(marks) == maxMarks:
			return marks
		}
		return append(marks, opened)
	}
	opens, closes := flanking(sign, before, after)
	if sign == '~' && n != 2 {
		return marks
	}
	for i := len(marks) - 1; closes && i >= 0 && n > 0; i-- {
		if marks[i].sign != sign || sign == '~' && marks[i].count != n {
			continue
		}
		matched := min(n, marks[i].count)
		marks[i].count -= matched
		n -= matched
		if marks = marks[:i+1]; marks[i].count == 0 {
			marks = marks[:i]
		}
	}
	if opened.count = n; n > 0 && opens && len(marks) < maxMarks {
		marks = append(marks, opened)
	}
	return marks
}

// body returns the post. Behind open marks, body leaves out white space, and it leaves out empty marks.
func (p *partial) body() []byte {
	out := p.out
	for i := len(p.marks) - 1; i >= 0; i-- {
		out = bytes.TrimRightFunc(out, unicode.IsSpace)
		if m := p.marks[i]; len(out) > m.out+m.count && string(out[m.out+m.count:]) != zeroWidth {
			break
		} else if m.out > 0 {
			out = out[:m.out]
		}
	}
	return out
}

// maxQuote bounds the prefix of a quote that rest repeats, in bytes.
const maxQuote = 32

// quotePrefix matches the prefix of a line of a quote, unless the line is indented code.
var quotePrefix = regexp.MustCompile(`^ {0,3}>[ \t>]*`)

// quote returns the prefix of the current line if the post ends within a quote. The rest begins with it
// again. It is empty if there is none.
func (p *partial) quote() string {
	begins := strings.LastIndexByte(p.text[:p.at], '\n') + 1
	prefix := quotePrefix.FindString(p.text[begins:p.at])
	rest := strings.TrimLeft(p.text[p.at:], " \t")
	if len(prefix) > maxQuote || rest == "" || rest[0] == '\n' {
		return ""
	}
	return prefix
}

// endMarks ends the post within emphasis or code: the post closes the marks, and rest opens them again.
func (p *partial) endMarks() {
	for n := len(p.marks); n > 0; n-- {
		m := p.marks[n-1]
		if inside := bytes.TrimSpace(p.out[m.out+m.count:]); m.out == 0 || len(inside) > 0 && string(inside) != zeroWidth {
			break
		}
		p.at, p.out, p.marks = m.text, p.out[:m.out], p.marks[:n-1] // an empty mark opens in the next post
	}
	if len(p.marks) == 0 {
		p.reopen = p.quote()
		return
	}
	p.out = p.body()
	rest := p.text[p.at:]
	space := rest[:len(rest)-len(strings.TrimLeft(rest, " \t\n"))]
	p.at += len(space)
	prefix := p.quote()
	if p.newLine || strings.Contains(space, "\n") {
		p.at = strings.LastIndexByte(p.text[:p.at], '\n') + 1
		prefix = linePrefix.FindString(p.text[p.at:])
		p.at += len(prefix)
	}
	var closing, reopen strings.Builder
	for i := range p.marks {
		closing.WriteString(p.marks[len(p.marks)-1-i].signs())
		reopen.WriteString(p.marks[i].signs())
	}
	p.close = closing.String()
	if strings.Count(space, "\n") < 2 {
		p.reopen = prefix + reopen.String()
	} else {
		p.reopen = prefix
	}
}

// marksRoom is the room that the closing of marks needs.
func marksRoom(marks []openRun) (n int) {
	for _, m := range marks {
		n += m.count
	}
	return n
}

// syntax are the characters that next reads on their own.
const syntax = "<&]!`*_~\n"

// cluster writes a grapheme, so that no post ends within one. Near the end of a post, it waits for
// the end of the grapheme.
func (p *partial) cluster(s string) (out string, n int) {
	if len(s) > 1 && s[0] < utf8.RuneSelf && s[1] < utf8.RuneSelf {
		return s[:1], 1
	}
	_, n = utf8.DecodeRuneInString(s)
	head := s[:min(len(s), clusterRoom)]
	first, _, _, _ := uniseg.FirstGraphemeClusterInString(head, -1)
	if at := strings.IndexAny(first[n:], syntax); at >= 0 {
		first = first[:n+at]
	}
	switch {
	case len(first) < len(head) || len(head) == len(s) && p.Done:
		return first, len(first)
	case len(head) == clusterRoom:
		return s[:n], n
	case p.size+clusterRoom > p.limit():
		return "", 0
	}
	return first, len(first)
}

// Beginning returns the graphemes at the beginning of a text that have at most limit characters.
func Beginning(text string, limit int) string {
	n, rest, state := 0, text, -1
	for rest != "" {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if limit -= utf8.RuneCountInString(cluster); limit < 0 {
			break
		}
		n += len(cluster)
	}
	return text[:n]
}
