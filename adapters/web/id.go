package web

import (
	"github.com/google/uuid"

	"parley/ingest/event"
)

// ThreadKey returns the canonical key of a web thread. threadID is the UUID that the client
// chose.
func ThreadKey(workspace, threadID string) event.ThreadKey {
	return event.ThreadKey("web:" + workspace + ":" + threadID)
}

// derivedID is the fault of a thread's UUID that only Parley makes.
const derivedID = "must not be a UUID of version 5: Parley makes those itself"

// isUUID reports whether a text is a UUID in its usual form.
func isUUID(s string) bool { return len(s) == 36 && uuid.Validate(s) == nil }

// newID returns a new id of a message or a thread: a UUIDv7.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// urlUUID returns the UUIDv5 of "parley:" and a name, in the URL namespace.
func urlUUID(name string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("parley:"+name)).String()
}
