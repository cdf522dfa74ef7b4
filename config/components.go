package config

import (
	"slices"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/adapters/agent/a2a"
	"parley/adapters/agent/acp"
	"parley/adapters/agent/agui"
	"parley/adapters/agent/anthropic"
	"parley/adapters/agent/echo"
	"parley/adapters/agent/openai"
	"parley/adapters/agent/runapi"
	"parley/adapters/agent/webhook"
	"parley/adapters/bluebubbles"
	"parley/adapters/discord"
	"parley/adapters/slack"
	"parley/adapters/web"
	"parley/adapters/web/bridge"
	"parley/ingest/event"
)

// platforms are the chat platforms. A new platform is a line here.
var platforms = []adapters.Platform{
	slack.Platform(),
	discord.Platform(),
	bluebubbles.Platform(),
	web.Platform(),
	bridge.Platform(),
}

// kinds are the kinds of agents. A new kind is a line here.
var kinds = []agent.Kind{
	echo.Kind(),
	openai.Kind(),
	anthropic.Kind(),
	agui.Kind(),
	webhook.Kind(),
	a2a.Kind(),
	runapi.Kind(),
	acp.Kind(),
}

// Platforms returns the chat platforms.
func Platforms() []adapters.Platform { return slices.Clone(platforms) }

// Platform returns a platform by its name, and false if there is none.
func Platform(name event.Platform) (adapters.Platform, bool) {
	return find(platforms, func(p adapters.Platform) bool { return p.Name == name })
}

// Kind returns a kind of agents by its name, and false if there is none.
func Kind(name string) (agent.Kind, bool) {
	return find(kinds, func(k agent.Kind) bool { return k.Name == name })
}

// PlatformNames returns the names of the chat platforms.
func PlatformNames() (names []string) {
	for _, p := range platforms {
		names = append(names, string(p.Name))
	}
	return names
}

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// Mentions returns the form of the mentions of a message's source: assembly.Mentions.
func Mentions(source string) (isMention func(token string) bool, known bool) {
	p, ok := Platform(event.Platform(source))
	return p.IsMention, ok && !p.API
}

func find[T any](list []T, is func(T) bool) (found T, ok bool) {
	i := slices.IndexFunc(list, is)
	if i < 0 {
		return found, false
	}
	return list[i], true
}
