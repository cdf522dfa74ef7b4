package markdown

import (
	"regexp"
	"strings"
)

const (
	// lineHeld is the number of bytes of a line that tell whether it belongs to a code
	// fence. A longer line is text.
	lineHeld = 200
	// fenceRoom is the room, in UTF-16 units, that a post keeps for the line that closes
	// an open fence. That line is not longer than lineHeld.
	fenceRoom = lineHeld + 56
	// openRoom is the room, in UTF-16 units, that a fence needs: its first line, whose
	// tokens may become longer, and fenceRoom.
	openRoom = 2*lineHeld + fenceRoom
	// maxInfo is the maximum length, in bytes, of an info string that rest repeats.
	maxInfo = 64
)

// fence is an open code fence. It may be indented and in a quote or a list, whose other
// lines are not tracked: if a list ends without the end of its fence, the fence counts
// as open.
type fence struct {
	prefix string // of its lines: quote marks, and spaces for list markers
	signs  string // such as "```"
	info   string
}

// fenceLine matches the first line of a fence: prefix, signs, info string.
// https://spec.commonmark.org/0.31.2/#fenced-code-blocks
var fenceLine = regexp.MustCompile("^((?:[ \t>]|[-+*][ \t]|[0-9]{1,9}[.)][ \t])*)(`{3,}|~{3,})(.*)")

// listMarker matches the characters of a prefix that belong to its first line alone.
var listMarker = regexp.MustCompile(`[^ \t>]`)

// structural are the characters that can precede a fence, and the characters of fences.
const structural = " \t>`~-+*.)0123456789"

// line returns the line that begins at p.at, up to lineHeld bytes. If the line may
// belong to a fence and is incomplete, known is false.
func (p *partial) line() (line string, known bool) {
	line = p.text[p.at:]
	line = line[:min(len(line), lineHeld)]
	if end := strings.IndexByte(line, '\n'); end >= 0 {
		return line[:end+1], true
	}
	fenced := strings.Trim(line, structural) == "" || openFence(line) != nil
	switch {
	case len(line) == lineHeld && fenced:
		return "text", true
	case fenced && !p.Done:
		return "", false
	}
	return line, true
}

// openFence returns the fence that the line opens, or nil.
func openFence(line string) *fence {
	if len(line) > lineHeld {
		return nil
	}
	m := fenceLine.FindStringSubmatch(line)
	if m == nil || m[2][0] == '`' && strings.Contains(m[3], "`") {
		return nil
	}
	f := &fence{prefix: listMarker.ReplaceAllString(m[1], " "), signs: m[2], info: strings.TrimSpace(m[3])}
	if len(f.info) > maxInfo {
		f.info = ""
	}
	return f
}

func (f *fence) inQuote() bool { return f != nil && strings.Contains(f.prefix, ">") }

// leftBy reports whether the line ends the quote around the fence, and so the fence.
func (f *fence) leftBy(line string) bool {
	return f.inQuote() && !strings.HasPrefix(strings.TrimLeft(line, " \t"), ">")
}

// closedBy reports whether the line closes the fence.
func (f *fence) closedBy(line string) bool {
	if f == nil {
		return false
	}
	before := " \t"
	if f.inQuote() {
		before += ">"
	}
	text := strings.TrimLeft(line, before)
	indent := len(line) - len(text)
	text = strings.TrimRight(text, " \t\n")
	return indent <= len(f.prefix)+3 && len(text) >= len(f.signs) && strings.Trim(text, f.signs[:1]) == ""
}

// divide returns the line that closes the fence at the end of a post, and the text that
// opens it again in the next post. Without a fence, both are empty.
func (f *fence) divide(inLine bool) (closing, reopen string) {
	if f == nil {
		return "", ""
	}
	closing = f.prefix + f.signs
	reopen = closing + f.info + "\n"
	if inLine {
		return "\n" + closing, reopen + f.prefix
	}
	return closing, reopen
}

// divide is the divide of the open fence. The next post reads the fence as the source has it.
func (p *partial) divide() (closing, reopen string) {
	closing, reopen = p.fence.divide(p.inLine())
	if p.Backticks && p.fence != nil {
		closing = strings.TrimSuffix(closing, p.fence.prefix+p.fence.signs) + p.fence.quote() + backticks
	}
	return closing, reopen
}

const backticks = "```"

// quote returns the prefix of a fence in a quote.
func (f *fence) quote() string {
	if f.inQuote() {
		return f.prefix
	}
	return ""
}

// writeFence writes the beginning of a line that opens or closes a fence, or is in one, with three backticks as the
// fence and without its indentation.
func (p *partial) writeFence(line string, opens *fence, closes bool) {
	text := strings.TrimSuffix(line, "\n")
	switch {
	case opens != nil:
		m := fenceLine.FindStringSubmatch(text)
		info := strings.TrimSpace(m[3])
		before := m[1]
		if strings.Trim(before, " \t") == "" {
			before = ""
		}
		p.write(before + backticks)
		p.at += len(m[1]) + len(m[2]) + len(m[3]) - len(strings.TrimLeft(m[3], " \t"))
		if info != "" && !isLanguage(info) {
			p.write("\n")
		}
	case closes:
		if p.closing.inQuote() {
			p.write(text[:len(text)-len(strings.TrimLeft(text, " \t>"))])
		}
		p.write(backticks)
		p.at += len(text)
	case p.fence != nil && !p.fence.inQuote():
		spaces := len(text) - len(strings.TrimLeft(text, " "))
		p.at += min(spaces, len(p.fence.prefix))
	}
}
