package send

import (
	"parley/adapters/bluebubbles/payload"
	"parley/adapters/markdown"
)

const (
	// maxText is the maximum length of one bubble, in characters.
	maxText = 4000
	// maxBubbles is the number of paragraphs up to which each one is a bubble of its own.
	maxBubbles = 4
)

// Format converts an agent's CommonMark to plain text. Each paragraph is a bubble if there are
// few of them. The text has no placeholders of attachments, because the rows that we read have none.
func (s *Sender) Format(text string, _ []string) []string {
	return markdown.Paragraphs(payload.Typed(text), markdown.Plain, maxText, maxBubbles)
}
