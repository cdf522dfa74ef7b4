// Package adapters defines the interfaces of a chat platform.
//
// An adapter is one package with its own Config. Every adapter implements Adapter. An ability
// that only some platforms have is a further interface, found by type assertion. There is a file
// for each direction:
//
//   - receive.go: Connector and Hook hand payloads to an Inbox.
//   - read.go: Backfiller, SlowHistory and ContextReader read messages; Finder, Lister and
//     StreamFinder find our own; Fetcher and Described read files; Namer and MentionNamer read names.
//   - send.go: Sender posts; Editor, Streamer, PartialFormatter, Ephemeral and ButtonSender are
//     further ways of posting; WorkingIndicator and SelfSigner show that the agent is at work.
//
// Stateful and Checker belong to no direction.
package adapters

import (
	"context"

	"parley/ingest/event"
)

// Adapter is one configured account on a platform.
type Adapter interface {
	Normalizer
	// Limits returns the size of one post and the pace of posts.
	Limits() Limits
}

// Normalizer turns one platform's raw payloads into events. Both methods depend on their
// arguments alone and are safe for concurrent use.
type Normalizer interface {
	// Keys reads the keys that the durable accept needs. It never fails: the Dedupe key
	// of an unreadable payload is a hash of its bytes, and intake makes that payload a
	// dead letter.
	Keys(envelope event.Envelope, facts Facts) event.Keys
	// Normalize returns the event of an envelope. An error means that this payload can
	// never be read; the error names the field. If a call of the directory's State fails
	// because the store is away, Normalize returns that error, wrapped, and is called again
	// later.
	Normalize(ctx context.Context, envelope event.Envelope, directory Directory) (event.Event, error)
}

// Facts are the facts about a workspace that the daemon remembers between envelopes.
type Facts interface {
	// Self is our identity in the workspace. A zero field is unknown.
	Self() event.Self
	// ChannelType is a channel's type, which is known from payloads.
	ChannelType(channel string) event.ChannelType
}

// Directory resolves the names that a payload leaves out.
type Directory interface {
	Facts
	// User returns a user's name. It returns false if the name is unknown; the caller
	// then uses the id instead. It may ask the platform, for at most a second.
	User(ctx context.Context, id string) (User, bool)
	// State is the workspace's state.
	State() State
}

// User is one of a platform's users, as the platform shows them.
type User struct {
	DisplayName string
	IsBot       bool
}

// Stateful is an adapter that needs the workspace's state in calls besides Run.
type Stateful interface {
	// UseState passes the state. It is called once, before every other call.
	UseState(State)
}
