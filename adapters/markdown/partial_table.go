package markdown

import (
	"strings"

	extast "github.com/yuin/goldmark/extension/ast"
)

// Adapt replaces what a chat with CommonMark does not render: a table becomes aligned text in a
// code fence, and a heading below the third level one of the third. It leaves code as it is. If
// more text can change the end of the text, that end is held and adapted is what precedes it.
// The adapted text of a longer text begins with that of a shorter one. Only a table whose lines
// begin with a | is one.
func Adapt(source string, done bool) (adapted, held string) {
	var out strings.Builder
	var open *fence
	for rest := source; rest != ""; {
		line, next := cutLine(rest)
		whole := done || strings.HasSuffix(line, "\n")
		switch {
		case open != nil:
			if open.closedBy(line) || open.leftBy(line) {
				open = nil
			}
		case openFence(line) != nil:
			open = openFence(line)
		case isRow(line):
			table, n := tableOf(rest)
			if n == len(rest) && !done {
				return out.String(), rest
			}
			out.WriteString(table)
			rest = rest[n:]
			continue
		case !whole && (strings.Trim(line, " ") == "" || strings.Trim(line, "#") == ""):
			return out.String(), rest // it may become a row or a heading
		case strings.HasPrefix(line, "####"):
			signs := len(line) - len(strings.TrimLeft(line, "#"))
			if signs <= 6 && strings.HasPrefix(line[signs:], " ") {
				line = line[signs-3:]
			}
		}
		out.WriteString(line)
		rest = next
	}
	return out.String(), ""
}

// cutLine cuts a text behind its first line.
func cutLine(source string) (line, rest string) {
	if end := strings.IndexByte(source, '\n'); end >= 0 {
		return source[:end+1], source[end+1:]
	}
	return source, ""
}

// isRow reports whether a line may be a row of a table.
func isRow(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " "), "|") && len(line)-len(strings.TrimLeft(line, " ")) <= 3
}

// tableOf returns the table at the beginning of a text as aligned text in a fence, and the number
// of bytes of its rows. Rows that are no table stay as they are.
func tableOf(source string) (table string, n int) {
	for rest := source; rest != "" && isRow(rest); {
		var line string
		line, rest = cutLine(rest)
		n += len(line)
	}
	rows := source[:n]
	b := builder{source: []byte(clean(rows))}
	document, _ := parse(b.source)
	parsed, isTable := document.FirstChild().(*extast.Table)
	if !isTable || parsed.NextSibling() != nil {
		return rows, n
	}
	table = "```\n" + splitBackticks(b.aligned(parsed), 3) + "```"
	if strings.HasSuffix(rows, "\n") {
		table += "\n"
	}
	return table, n
}
