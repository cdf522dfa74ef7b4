package live

import (
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/adapters/bluebubbles/call"
	"parley/config/secret"
)

// Receiver receives the messages of one server, at a hook and by polls. It is safe for concurrent use.
type Receiver struct {
	client   *call.Client
	settings Settings
	state    adapters.State // nil before UseState
	progress *progress
	wants    atomic.Pointer[adapters.Wants] // of the last poll; nil on a node that does not poll
	warned   sync.Once                      // of EverybodyWords
}

// Settings are the settings of a Receiver.
type Settings struct {
	WebhookSecret secret.Value  // the last segment of the webhook's address
	Poll          time.Duration // the time between two polls
}

// New returns a receiver that makes its calls by a client.
func New(client *call.Client, settings Settings) *Receiver {
	return &Receiver{client: client, settings: settings, progress: newProgress()}
}

// UseState implements adapters.Stateful. The hook of each node reads missed messages.
func (rc *Receiver) UseState(state adapters.State) { rc.state = state }

// Connections returns the poller.
func (rc *Receiver) Connections() []adapters.Connection {
	return []adapters.Connection{{Exclusive: true, Run: rc.poll}}
}
