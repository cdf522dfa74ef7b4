package discord

import (
	"context"
	"errors"
	"strings"

	"parley/adapters"
	"parley/ingest/event"
)

// Adapter normalises recorded payloads. This version has no live connection to Discord.
type Adapter struct{ Normalizer }

var (
	_ adapters.Adapter   = Adapter{}
	_ adapters.Connector = Adapter{}
)

// Platform describes Discord.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.Discord, Title: "Discord", Config: func() adapters.Config { return new(DefaultConfig()) },
		New:        func(string, adapters.Config) adapters.Adapter { return Adapter{} },
		Normalizer: Normalizer{}, Self: SelfOf, IsMention: isUserMention,
	}
}

// Limits implements adapters.Adapter. The adapter sends nothing.
func (Adapter) Limits() adapters.Limits { return adapters.Limits{} }

// Connections implements adapters.Connector. The connection is refused.
func (Adapter) Connections() []adapters.Connection {
	return []adapters.Connection{{Run: func(context.Context, adapters.Inbox, adapters.Link) error {
		return &adapters.RefusedError{
			Err:  errors.New("a live connection to Discord is not supported by this version"),
			Hint: "remove the workspace's file to avoid this message; parley replay reads recordings of this platform",
		}
	}}}
}

// isUserMention reports whether a token mentions a user, such as "<@80351110224678912>".
func isUserMention(token string) bool {
	id, opened := strings.CutPrefix(token, "<@")
	id, closed := strings.CutSuffix(id, ">")
	return opened && closed && id != "" && strings.Trim(id, "0123456789") == ""
}
