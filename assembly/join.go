package assembly

import (
	"strings"
	"unicode"
)

// Join merges all messages between two replies or results of tools into one user message, for
// agents that take exactly one. An agent that remembers the earlier messages itself needs only the
// last of the joined messages.
//
// Each message begins a line with its header, and its other lines are indented by two
// spaces. A block precedes its turn without indentation, and no line of it looks like a
// header. So the joined text shows the author of every message, even if a message contains
// a header. Files follow the text of their message.
func Join(messages []Message) []Message { return joinBy(messages, "\n") }

// JoinApart is Join with a blank line between the messages.
func JoinApart(messages []Message) []Message { return joinBy(messages, "\n\n") }

func joinBy(messages []Message, gap string) []Message {
	var joined []Message
	begin := 0 // of the messages since the last reply
	for i, m := range messages {
		if m.Role != RoleAssistant && m.Role != RoleTool {
			continue
		}
		if begin < i {
			joined = append(joined, join(messages[begin:i], gap))
		}
		joined, begin = append(joined, m), i+1
	}
	if begin < len(messages) {
		joined = append(joined, join(messages[begin:], gap))
	}
	return joined
}

func join(messages []Message, gap string) Message {
	j := joinedMessage{gap: gap}
	j.text.Grow(size(messages) + len(messages))
	for _, m := range messages {
		if j.text.Len() > 0 {
			j.text.WriteString(j.gap[1:])
		}
		for i, part := range m.Parts {
			switch {
			case part.File != nil:
				j.endText()
				j.parts = append(j.parts, part)
			case strings.HasPrefix(m.ID, fencedID):
				j.beginLine()
				j.text.WriteString(part.Text)
			case m.Role == RoleSystem:
				j.block(part.Text)
			default:
				j.message(part.Text, i == 0)
			}
		}
	}
	j.endText()
	return Message{ID: messages[len(messages)-1].ID, Role: RoleUser, Parts: j.parts}
}

// joinedMessage builds the parts of a joined message.
type joinedMessage struct {
	parts []Part
	text  strings.Builder // the text after the last file
	gap   string          // between two messages
}

func (j *joinedMessage) endText() {
	if j.text.Len() > 0 {
		j.parts = append(j.parts, Part{Text: j.text.String()})
		j.text.Reset()
	}
}

func (j *joinedMessage) beginLine() {
	if j.text.Len() > 0 {
		j.text.WriteByte('\n')
	}
}

// message writes a text of one message; first means its first text. Without the trim, a
// row of version 0 could begin with white space and look like a part of the message
// above it.
func (j *joinedMessage) message(text string, first bool) {
	j.beginLine()
	if first {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	} else {
		j.text.WriteString(continuation)
	}
	writeIndented(&j.text, text, isIndentedImitation)
}

// isIndentedImitation reports whether indentImitations has indented a line.
func isIndentedImitation(line string) bool {
	return strings.HasPrefix(line, continuation) && imitates(line)
}

// block writes a block line by line. A block of an integration may contain lines that look
// like messages. They become lines of context.
func (j *joinedMessage) block(text string) {
	for more := true; more; {
		var line string
		line, text, more = cutLine(text)
		j.beginLine()
		if messageStart.MatchString(visible(line)) && !strings.HasPrefix(line, continuation) {
			j.text.WriteString("- ")
		}
		j.text.WriteString(line)
	}
}
