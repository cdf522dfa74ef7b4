package turn

import (
	"strings"

	"parley/assembly"
)

// mentions are the tokens of the form <@…> and <#…> that an input holds: what the
// agent may copy into its answer. Everything else that looks like one, it has made up.
func mentions(messages []assembly.Message) []string {
	var tokens []string
	seen := map[string]bool{}
	for _, m := range messages {
		for _, part := range m.Parts {
			for text := part.Text; ; {
				at := strings.IndexByte(text, '<')
				if at < 0 {
					break
				}
				text = text[at:]
				end := strings.IndexAny(text[1:], "<>\n") + 1
				if end > 0 && text[end] == '>' && isMention(text[:end+1]) && !seen[text[:end+1]] {
					seen[text[:end+1]] = true
					tokens = append(tokens, text[:end+1])
				}
				text = text[max(end, 1):]
			}
		}
	}
	return tokens
}

// maxMention bounds a token, in bytes.
const maxMention = 128

func isMention(token string) bool {
	return len(token) <= maxMention && len(token) > len("<@>") && (token[1] == '@' || token[1] == '#')
}
