package assembly

import (
	"slices"
	"strings"
)

// contextID begins the id of a turn's block.
const contextID = "context-"

// leastBlock is the least number of bytes of a shortened block that is worth showing.
const leastBlock = 400

// Size returns the number of bytes of text in the messages.
func Size(messages []Message) int { return size(messages) }

// Shrink returns the newest messages whose text has at most limit bytes. First it leaves out whole turns,
// the oldest first, and then lines of the current turn's block, the oldest first. The messages of the
// current turn, the first of which has the id first, always stay. If they alone are too long, their files
// that are words are only named, those of the oldest message first.
func Shrink(messages []Message, first string, limit int) []Message {
	turn := turnStart(messages, first)
	messages = nameFiles(messages, turn, limit)
	for i := range turn {
		if (i == 0 || beginsTurn(messages, i)) && size(messages[i:]) <= limit {
			return messages[i:]
		}
	}
	var shown []Message
	left := limit - size(messages[turn:])
	for _, m := range messages[turn:] {
		if left < 0 && strings.HasPrefix(m.ID, contextID) {
			text := m.Text()
			room := len(text) + left
			if left += len(text); room < leastBlock {
				continue
			}
			text = lastLines(text, room)
			left -= len(text)
			m.Parts = []Part{{Text: text}}
		}
		shown = append(shown, m)
	}
	return shown
}

// nameFiles returns the messages without the words of files that the current turn has no room for.
func nameFiles(messages []Message, turn, limit int) []Message {
	left := limit
	for i := range messages[turn:] {
		if !strings.HasPrefix(messages[turn+i].ID, contextID) {
			left -= size(messages[turn+i : turn+i+1])
		}
	}
	changed := slices.Clone(messages)
	for i := turn; i < len(changed) && left < 0; i++ {
		if m := &changed[i]; m.Named != nil {
			left += size(changed[i : i+1])
			m.Parts, m.Named = m.Named, nil
			left -= size(changed[i : i+1])
		}
	}
	return changed
}

// turnStart returns the index of the first message of the current turn, with its block and the client's
// instructions.
func turnStart(messages []Message, first string) int {
	start := max(0, len(messages)-1)
	for i, m := range messages {
		if m.ID == first {
			start = i
			break
		}
	}
	for start > 0 && messages[start-1].Role == RoleSystem {
		start--
	}
	return start
}

// beginsTurn reports whether an earlier turn begins with a message.
func beginsTurn(messages []Message, i int) bool {
	return messages[i-1].Role == RoleAssistant || strings.HasPrefix(messages[i].ID, contextID)
}
