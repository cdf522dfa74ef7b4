package payload

import (
	"github.com/google/uuid"

	"parley/ingest/event"
)

// ThreadKey returns the canonical key of a web thread. threadID is the UUID that the client
// chose.
func ThreadKey(workspace, threadID string) event.ThreadKey {
	return event.ThreadKey("web:" + workspace + ":" + threadID)
}

// DerivedID is the fault of a thread's UUID that only Parley makes.
const DerivedID = "must not be a UUID of version 5: Parley makes those itself"

// IsUUID reports whether a text is a UUID in its usual form.
func IsUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// NewID returns a new id of a message or a thread: a UUIDv7.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// UUIDOf returns the UUIDv5 of "parley:" and a name, in the URL namespace.
func UUIDOf(name string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("parley:"+name)).String()
}

// OwnSender returns the sender_id of a token's own messages over the routes that name a workspace.
func OwnSender(token string) string { return string(event.Web) + ":" + token }
