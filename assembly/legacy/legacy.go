// Package legacy removes the prefixes that older integrations put into the content of
// messages, for display.
package legacy

import (
	"cmp"
	"strings"
	"unicode"

	"parley/ingest/event"
)

// Strip returns the typed text, without the prefix that the source's integration added
// before contract version 1:
//
//	slack        [Slack channel:C06RY3YBSLE user:Olivia (<@U06STGBF4Q0>)] text
//	discord      [Discord channel:123456 user:Olivia] text
//	bluebubbles  [Olivia]: text
//
// It removes one prefix, and only from a row of version 0. In later versions, the author
// typed such a prefix.
func Strip(content, source string, version int) string {
	if version != 0 {
		return content
	}
	var text string
	var found bool
	switch event.Platform(source) {
	case event.Slack:
		text, found = routed(content, "[Slack channel:")
	case event.Discord:
		text, found = routed(content, "[Discord channel:")
	case event.BlueBubbles:
		text, found = named(content)
	}
	if !found {
		return content
	}
	return strings.TrimLeftFunc(text, unicode.IsSpace)
}

// Add returns a typed text with the prefix of its source, as Strip removes it. A source without a form
// of its own has none.
func Add(content string, author *event.Metadata) string {
	name := strings.TrimSpace(strings.NewReplacer("[", "(", "]", ")", "\n", " ").Replace(cmp.Or(author.SenderDisplayName, author.SenderID)))
	channel := strings.Join(strings.Fields(cmp.Or(author.ChannelExternalID, "unknown")), "")
	switch event.Platform(author.Source) {
	case event.Slack:
		if author.MentionToken != "" {
			name += " (" + author.MentionToken + ")"
		}
		return "[Slack channel:" + channel + " user:" + name + "] " + content
	case event.Discord:
		return "[Discord channel:" + channel + " user:" + name + "] " + content
	case event.BlueBubbles:
		return "[" + name + "]: " + content
	}
	return content
}

// routed returns the text after "<opening><channel> user:<name>]".
func routed(content, opening string) (text string, found bool) {
	rest, opened := strings.CutPrefix(content, opening)
	channel, rest, divided := strings.Cut(rest, " user:")
	name, text, closed := strings.Cut(rest, "]")
	blank := strings.ContainsFunc(channel, unicode.IsSpace)
	return text, opened && divided && closed && channel != "" && !blank && name != ""
}

// named returns the text after "[<name>]:".
func named(content string) (text string, found bool) {
	rest, opened := strings.CutPrefix(content, "[")
	name, rest, closed := strings.Cut(rest, "]")
	text, ended := strings.CutPrefix(rest, ":")
	return text, opened && closed && ended && name != ""
}
