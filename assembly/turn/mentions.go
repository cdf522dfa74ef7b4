package turn

import (
	"regexp"
	"slices"

	"parley/assembly"
)

// mention matches a token that names a user or a channel.
var mention = regexp.MustCompile(`<[@#][^<>\n]{1,125}>`)

// mentions returns the tokens of the form <@…> and <#…> in an input, each once, without those of
// the agent's own answers. The agent may copy them into its answer. Any other token in an answer
// was invented by the agent, now or earlier.
func mentions(messages []assembly.Message) (tokens []string) {
	for _, m := range messages {
		if m.Role == assembly.RoleAssistant {
			continue
		}
		for _, part := range m.Parts {
			tokens = append(tokens, mention.FindAllString(part.Text, -1)...)
		}
	}
	slices.Sort(tokens)
	return slices.Compact(tokens)
}
