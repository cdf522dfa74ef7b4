package bluebubbles

import (
	"context"
	"errors"

	"parley/adapters"
	"parley/ingest/event"
)

// Adapter normalises recorded payloads. This version has no live connection to BlueBubbles.
type Adapter struct{ Normalizer }

var (
	_ adapters.Adapter   = Adapter{}
	_ adapters.Connector = Adapter{}
)

// senders is the namespace of sender ids.
const senders = "bb"

// Platform describes BlueBubbles.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.BlueBubbles, Senders: senders, Title: "iMessage", Config: func() adapters.Config { return new(DefaultConfig()) },
		New:        func(string, adapters.Config) adapters.Adapter { return Adapter{} },
		Normalizer: Normalizer{},
	}
}

// Limits implements adapters.Adapter. The adapter sends nothing.
func (Adapter) Limits() adapters.Limits { return adapters.Limits{} }

// Connections implements adapters.Connector. The connection is refused.
func (Adapter) Connections() []adapters.Connection {
	return []adapters.Connection{{Run: func(context.Context, adapters.Inbox, adapters.Link) error {
		return &adapters.RefusedError{
			Err:  errors.New("a live connection to BlueBubbles is not supported by this version"),
			Hint: "remove the workspace's file to avoid this message; parley replay reads recordings of this platform",
		}
	}}}
}
