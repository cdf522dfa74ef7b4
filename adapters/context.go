package adapters

import (
	"context"

	"parley/ingest/event"
)

// ContextReader is an adapter that can read the messages of a thread from before the
// journal knew the thread.
type ContextReader interface {
	// Root is the external id of the message that the thread hangs under; false for a
	// thread that hangs under none, or whose beginning is always known. Pure.
	Root(thread event.ThreadKey) (id string, ok bool)
	// Before reads the thread's root and the newest of the messages between it and
	// the message with the external id upTo, so many at the most. It does not wait
	// for the platform's pace: an error means that nothing could be read.
	Before(ctx context.Context, thread event.ThreadKey, upTo string, newest int) (Before, error)
}

// Before is what was read of a thread.
type Before struct {
	// Envelopes are events of the messages, with the Transport event.Reread, in the
	// order in which they were said.
	Envelopes []event.Envelope
	// Earlier is how many messages were left out between the root and the others.
	Earlier int
	// Gap says that the messages behind the root could not be read.
	Gap bool
}
