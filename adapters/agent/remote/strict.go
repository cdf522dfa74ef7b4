package remote

import (
	"slices"
	"strings"

	"parley/assembly"
)

// Alternate returns the messages in alternating roles, the first one a user's, for servers that want
// them so. All messages between two replies are joined with join, and two neighbouring replies with a
// blank line. Blank replies and replies before the first message are left out. Results of tools stay messages
// of their own behind the reply with their calls.
func Alternate(messages []assembly.Message, join func([]assembly.Message) []assembly.Message) (out []assembly.Message) {
	var kept []assembly.Message
	for _, m := range messages {
		if m.Role != assembly.RoleAssistant || len(m.Calls) > 0 || strings.TrimSpace(Text(m)) != "" {
			kept = append(kept, m)
		}
	}
	for _, m := range join(assembly.EndWithUser(kept)) {
		switch last := len(out) - 1; {
		case last < 0 && m.Role == assembly.RoleAssistant:
		case last >= 0 && m.Role == assembly.RoleAssistant && out[last].Role == m.Role:
			out[last].Parts = []assembly.Part{{Text: strings.TrimRight(Text(out[last]), " \n") + "\n\n" + Text(m)}}
			out[last].Calls = append(slices.Clone(out[last].Calls), m.Calls...)
			if out[last].Kept == nil {
				out[last].Kept = m.Kept
			}
		default:
			out = append(out, m)
		}
	}
	return out
}

// Prepend puts a text before the first message, with a blank line between them.
func Prepend(text string, messages []assembly.Message) {
	if len(messages) == 0 {
		return
	}
	first := &messages[0]
	if first.Parts[0].File != nil {
		first.Parts = append([]assembly.Part{{Text: text}}, first.Parts...)
		return
	}
	parts := append([]assembly.Part(nil), first.Parts...)
	parts[0].Text = text + "\n\n" + parts[0].Text
	first.Parts = parts
}
