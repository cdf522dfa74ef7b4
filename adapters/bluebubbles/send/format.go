package send

import (
	"strings"

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
	posts := markdown.Format(payload.Typed(text), markdown.Plain, maxText)
	var bubbles []string
	for _, post := range posts {
		for paragraph := range strings.SplitSeq(post, "\n\n") {
			if paragraph = strings.TrimSpace(paragraph); paragraph != "" {
				bubbles = append(bubbles, paragraph)
			}
		}
	}
	if len(bubbles) == 0 || len(bubbles) > maxBubbles {
		return posts
	}
	return bubbles
}
