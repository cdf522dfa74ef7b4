package markdown

import (
	"fmt"
	"strings"
)

// Verbatim returns CommonMark that shows a text of one line as it is. Some characters are entities, because they
// begin a formula, also after a backslash.
func Verbatim(text string) string {
	var b strings.Builder
	for i := range len(text) {
		switch c := text[i]; {
		case c <= ' ' || c >= 0x7f || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			b.WriteByte(c)
		case strings.IndexByte(`[]()$\`, c) >= 0:
			fmt.Fprintf(&b, "&#%d;", c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}
