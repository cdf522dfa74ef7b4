package markdown

import (
	"strings"

	extast "github.com/yuin/goldmark/extension/ast"
)

// Chat is a platform that renders CommonMark itself.
type Chat int

const (
	// SlackBlock is Slack's markdown block, which renders all of it.
	SlackBlock Chat = iota
	// Discord renders no tables and no deep headings, and reads some signs in another way.
	Discord
)

// Adapt replaces what a chat with CommonMark does not render, or reads in another way: a table becomes
// aligned text in a code fence, a heading below the third level one of the third, and see inline. It
// leaves code as it is. If more text can change the end of the text, that end is held and adapted is
// what precedes it. The adapted text of a longer text begins with that of a shorter one. Only a table
// whose lines begin with a | is one. For Slack, it replaces elements of HTML alone.
func Adapt(source string, chat Chat, done bool) (adapted, held string) {
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
			out.WriteString(line)
			rest = next
			continue
		case openFence(line) != nil && whole:
			if chat == Discord {
				line, _ = flat(line, true)
			}
			open = openFence(line)
			out.WriteString(line)
			rest = next
			continue
		case isRow(line) && chat == Discord:
			table, n := tableOf(rest)
			if !done && len(rest)-n <= maxIndent && strings.Trim(rest[n:], " ") == "" {
				return out.String(), rest // another row may follow
			}
			out.WriteString(table)
			rest = rest[n:]
			continue
		case chat != Discord:
		case !whole && (strings.Trim(line, " ") == "" || strings.Trim(line, "#") == ""):
			return out.String(), rest // it may become a row or a heading
		case strings.HasPrefix(line, "####"):
			signs := len(line) - len(strings.TrimLeft(line, "#"))
			if signs <= 6 && strings.HasPrefix(line[signs:], " ") {
				line = line[signs-3:]
			}
		}
		if chat == Discord {
			known := false
			if line, known = flat(line, whole); !known {
				return out.String(), rest
			}
		}
		text, used := inline(line, chat, whole, openFence(line) != nil) // a backtick may follow, and then the line opens no fence
		out.WriteString(text)
		if used < len(line) {
			return out.String(), line[used:]
		}
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

// maxIndent is the number of spaces that may precede a row of a table.
const maxIndent = 3

// isRow reports whether a line may be a row of a table.
func isRow(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " "), "|") && len(line)-len(strings.TrimLeft(line, " ")) <= maxIndent
}

// tableOf returns the table at the beginning of a text as aligned text in a fence, and the number
// of bytes of its rows. Rows that are no table are text.
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
		var text strings.Builder
		for line := range strings.Lines(rows) {
			line, _ = inline(line, Discord, true, false)
			text.WriteString(line)
		}
		return text.String(), n
	}
	table = "```\n" + splitBackticks(b.aligned(parsed), 3) + "```"
	if strings.HasSuffix(rows, "\n") {
		table += "\n"
	}
	return table, n
}
