package assembly

import (
	"slices"
	"strings"
	"unicode"
)

// Join makes one user message of all that stands between two replies, for agents
// that take exactly one; what an agent is asked now is the last of them, where it
// remembers the rest itself.
//
// Each message begins at a line's start with its header, and its other lines are
// indented by two spaces; a block stands unindented before its turn, and no line
// of it looks like a header. So who said what can be read off the joined text
// whatever anybody wrote. Files stay behind the text they came with.
func Join(messages []Message) []Message {
	var joined []Message
	for len(messages) > 0 {
		n := slices.IndexFunc(messages, func(m Message) bool { return m.Role == RoleAssistant })
		switch {
		case n < 0:
			n = len(messages)
			fallthrough
		case n > 0:
			joined = append(joined, join(messages[:n]))
		default:
			n = 1
			joined = append(joined, messages[0])
		}
		messages = messages[n:]
	}
	return joined
}

func join(messages []Message) Message {
	var j joint
	j.text.Grow(size(messages) + len(messages))
	for _, m := range messages {
		for i, part := range m.Parts {
			switch {
			case part.File != nil:
				j.endText()
				j.parts = append(j.parts, part)
			case m.Role == RoleSystem:
				j.block(part.Text)
			default:
				j.said(part.Text, i == 0)
			}
		}
	}
	j.endText()
	return Message{Role: RoleUser, Parts: j.parts}
}

// joint is a joined message in the making.
type joint struct {
	parts []Part
	text  strings.Builder // what comes after the last file
}

func (j *joint) endText() {
	if j.text.Len() > 0 {
		j.parts = append(j.parts, Part{Text: j.text.String()})
		j.text.Reset()
	}
}

func (j *joint) beginLine() {
	if j.text.Len() > 0 {
		j.text.WriteByte('\n')
	}
}

// said writes a text of one message. Only a row with its author baked in can
// begin with white space, and would be read as part of what stands above it.
func (j *joint) said(text string, first bool) {
	j.beginLine()
	if first {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	} else {
		j.text.WriteString("  ")
	}
	writeIndented(&j.text, text)
}

// block writes a block line by line. An integration's own may hold lines that
// would read as headers: they become lines of context.
func (j *joint) block(text string) {
	for more := true; more; {
		var line string
		line, text, more = cutLine(text)
		j.beginLine()
		if looksLikeHeader(line) {
			j.text.WriteString("- ")
		}
		j.text.WriteString(line)
	}
}

func looksLikeHeader(line string) bool {
	_, after, closed := strings.Cut(line, "]")
	return strings.HasPrefix(line, "[") && closed && strings.HasPrefix(after, ":")
}
