package live

import (
	"context"

	"parley/adapters"
	"parley/adapters/slack/call"
	"parley/adapters/slack/payload"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/wake"
)

// Receiver receives the events of one team, over sockets or at a hook. It is safe for concurrent use.
type Receiver struct {
	Times Times // of the sockets

	client    *call.Client
	workspace string
	settings  Settings
	accepted  func(*payload.Payload)
	withheld  wake.Signal // is set if Slack withholds events
}

// Settings are the settings of a Receiver.
type Settings struct {
	Sockets       int          // connections that RunSockets keeps open
	SigningSecret secret.Value // verifies that a call of the hook came from Slack
}

// New returns a receiver that makes its calls by a client. After the durable accept of a payload that may
// report the start of an assistant thread, it calls accepted.
func New(client *call.Client, workspace string, settings Settings, accepted func(*payload.Payload)) *Receiver {
	return &Receiver{Times: defaultTimes(), client: client, workspace: workspace, settings: settings, accepted: accepted, withheld: wake.NewSignal()}
}

// RunHook reports that events can arrive at the hook, and blocks until ctx ends. It returns a
// *adapters.RefusedError earlier if Slack refuses the bot token.
func (rc *Receiver) RunHook(ctx context.Context, self event.Self, link adapters.Link) error {
	link.Up(self)
	return rc.watch(ctx, link)
}
