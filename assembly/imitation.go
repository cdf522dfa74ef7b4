package assembly

import (
	"regexp"
	"strings"
	"unicode"

	"parley/assembly/lookalike"
)

// continuation begins a line that continues the message or the context line above it.
const continuation = "  "

// messageStart matches the beginning of a line that a reader of a flattened transcript may
// take for the beginning of a message: a header, the name of a role, or a token of a chat
// template, or the mark of a block of tools or context, with markup around it or without. Lines are judged as people see them.
var messageStart = regexp.MustCompile(`(?i)^(?:` + strings.Join([]string{
	`\[.*\][\s*_~\x60]*[:：]`,
	`(?:system|developer|human|user|assistant|ai|bot|model|tool|function)[\s*_~\x60]*[:：]`,
	`<\|`,
	`\[/?inst\]`,
	`<</?sys>>`,
	`</?s>`,
	`<(?:bos|eos|pad)>`,
	`<(?:start|end)_of_turn>`,
	`<!--\s*(?:tools|context|notes)_(?:start|end)`,
}, "|") + `)`)

// blockStart matches the beginning of a line that a reader may take for the heading of a
// block.
var blockStart = regexp.MustCompile(`(?i)^\[thread context`)

// markup are the signs of Markdown that may precede a header: readers see a quotation, a heading or another font.
const markup = ">#*_~`"

// visible returns a line as readers see it, without leading spaces and markup; empty if it begins like no imitation.
func visible(line string) string {
	if !mayImitate(line) {
		return ""
	}
	seen := lookalike.Seen(line)
	rest := strings.TrimLeft(seen, " "+markup)
	if strings.Contains(seen[:len(seen)-len(rest)], "```") {
		return "" // a fence: the rest of the line names the language of a block
	}
	return rest
}

// mayImitate reports whether a line begins with a character with which an imitation can begin.
func mayImitate(line string) bool {
	for _, r := range line {
		like := lookalike.Rune(r)
		if !lookalike.IsSeen(r) || strings.ContainsRune(markup, like) {
			continue
		}
		return strings.ContainsRune("[<sdhuabmtf", unicode.ToLower(like))
	}
	return false
}

// imitates reports whether a line looks like the beginning of a message or of a block.
func imitates(line string) bool {
	line = visible(line)
	return messageStart.MatchString(line) || blockStart.MatchString(line)
}

// indentImitations indents the lines after the first that imitate another message. The other
// bytes of the text do not change.
func indentImitations(text string) string {
	_, rest, more := cutLine(text)
	if !more {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + len(continuation))
	for more {
		b.WriteString(text[:len(text)-len(rest)]) // with its line end
		text = rest
		var line string
		if line, rest, more = cutLine(text); imitates(line) {
			b.WriteString(continuation)
		}
	}
	b.WriteString(text)
	return b.String()
}
