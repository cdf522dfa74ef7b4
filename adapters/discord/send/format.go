package send

import (
	"strings"

	"parley/adapters"
	"parley/adapters/markdown"
)

// maxText is the maximum length of a message, in characters (code points).
// https://docs.discord.com/developers/resources/message#create-message
const maxText = 2000

// Format splits an agent's CommonMark into messages. Discord renders most of CommonMark itself,
// so Format changes only tokens that must have no effect, tables, and headings that Discord does
// not know.
func (s *Sender) Format(text string, mentions []string) []string {
	return adapters.FormatWhole(s, text, mentions)
}

// headBytes is the length of a text's beginning that surely fills a message, in bytes, unless a
// table is longer.
const headBytes = 8 * maxText

// FormatPartial formats the beginning of a text for one message. If more text follows, it holds
// back a table that has not ended. Of a long text it reads the beginning alone.
func (s *Sender) FormatPartial(text string, mentions []string, done bool) (shown, rest string, full bool) {
	if len(text) > headBytes {
		head := text[:strings.LastIndexByte(text[:headBytes], '\n')+1]
		if shown, rest, full = formatPartial(head, mentions, false); full {
			return shown, rest + text[len(head):], true
		}
	}
	return formatPartial(text, mentions, done)
}

func formatPartial(text string, mentions []string, done bool) (shown, rest string, full bool) {
	adapted, held := markdown.Adapt(text, markdown.Discord, done)
	shown, rest, full = markdown.FormatPartial(adapted, markdown.PartialOptions{
		Limit: maxText, Characters: true, Mentions: mentions, Done: done && held == "", Backticks: true,
	})
	if !full {
		return shown, text, false
	}
	return shown, rest + held, true
}

// firstLine returns the first line of a text that is not blank.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
