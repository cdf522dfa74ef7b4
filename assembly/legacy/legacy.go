// Package legacy strips what older integrations baked into a message's content,
// for display.
package legacy

import (
	"strings"
	"unicode"

	"parley/ingest/event"
)

// Strip returns what was typed, without the prefix that source's integration put
// before it until contract version 1:
//
//	slack        [Slack channel:C06RY3YBSLE user:Olivia (<@U06STGBF4Q0>)] text
//	discord      [Discord channel:123456 user:Olivia] text
//	bluebubbles  [Olivia]: text
//
// It strips one prefix, and only from a row of version 0: in a later one a text
// of that shape is what somebody typed.
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

// routed returns what follows "<opening><channel> user:<name>]".
func routed(content, opening string) (text string, found bool) {
	rest, opened := strings.CutPrefix(content, opening)
	channel, rest, divided := strings.Cut(rest, " user:")
	name, text, closed := strings.Cut(rest, "]")
	blank := strings.ContainsFunc(channel, unicode.IsSpace)
	return text, opened && divided && closed && channel != "" && !blank && name != ""
}

// named returns what follows "[<name>]:".
func named(content string) (text string, found bool) {
	rest, opened := strings.CutPrefix(content, "[")
	name, rest, closed := strings.Cut(rest, "]")
	text, ended := strings.CutPrefix(rest, ":")
	return text, opened && closed && ended && name != ""
}
