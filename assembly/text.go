package assembly

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"parley/assembly/lookalike"
	"parley/ingest/event"
)

// cutLine splits text after its first line. If there is no other line, more is false. CRLF
// is one line end.
func cutLine(text string) (line, rest string, more bool) {
	i := strings.IndexFunc(text, lookalike.IsLineEnd)
	if i < 0 {
		return text, "", false
	}
	if strings.HasPrefix(text[i:], "\r\n") {
		return text[:i], text[i+2:], true
	}
	_, width := utf8.DecodeRuneInString(text[i:])
	return text[:i], text[i+width:], true
}

// writeIndented writes text with LF and two spaces as its line ends, so that only the first
// line can look like a header or a context line. It does not indent a line that is already
// indented, if already is not nil.
func writeIndented(b *strings.Builder, text string, already func(line string) bool) {
	line, rest, more := cutLine(text)
	b.WriteString(line)
	for more {
		line, rest, more = cutLine(rest)
		b.WriteByte('\n')
		if already == nil || !already(line) {
			b.WriteString(continuation)
		}
		b.WriteString(line)
	}
}

// excerptGraphemes is the maximum length of a message's text in a context line.
const excerptGraphemes = 400

// excerpt trims text and cuts it, with an ellipsis. It also bounds the code points, so that
// combining marks cannot make the result longer.
func excerpt(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= excerptGraphemes {
		return text
	}
	bounded := event.Beginning(text, excerptGraphemes*maxGraphemePoints)
	rest, state := bounded, -1
	for n := 0; n < excerptGraphemes && rest != ""; n++ {
		_, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
	}
	kept := bounded[:len(bounded)-len(rest)]
	if len(kept) == len(text) {
		return text
	}
	return strings.TrimSpace(kept) + "…"
}

// maxHeading is the maximum length of a heading, in bytes.
const maxHeading = 200

// lastLines trims text and returns its last lines, at most limit bytes. If the last line
// alone is longer, it returns the end of that line. A heading, which is a first line in
// square brackets, stays above them.
func lastLines(text string, limit int) string {
	text = strings.TrimSpace(text)
	heading := ""
	if first, rest, more := cutLine(text); len(text) > limit && more && len(first) <= maxHeading && strings.HasPrefix(first, "[") && strings.HasSuffix(first, "]") {
		heading, text = first+"\n", rest
		limit -= len(heading)
	}
	for len(text) > limit {
		_, rest, more := cutLine(text)
		if !more {
			rest = text[len(text)-limit:]
			for rest != "" && !utf8.RuneStart(rest[0]) {
				rest = rest[1:]
			}
		}
		text = rest
	}
	return heading + strings.TrimSpace(text)
}
