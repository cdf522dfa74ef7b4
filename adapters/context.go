package adapters

import (
	"context"

	"parley/ingest/event"
)

// ContextReader is an adapter that can read the messages of a thread from before the
// journal knew the thread.
type ContextReader interface {
	// Root returns the external id of the thread's root message. It returns false if the
	// thread has none, or if the beginning of such a thread is always known. Pure.
	Root(thread event.ThreadKey) (id string, ok bool)
	// ReadHistory reads the thread's root, and at most newest of the latest messages between
	// the root and the message with the external id upTo. It does not wait for the
	// platform's pace. An error means that it read nothing.
	ReadHistory(ctx context.Context, thread event.ThreadKey, upTo string, newest int) (ThreadHistory, error)
}

// ThreadHistory is the result of such a read.
type ThreadHistory struct {
	// Envelopes are events of the messages, with the Transport event.Reread, in the order
	// of the messages.
	Envelopes []event.Envelope
	// Earlier is the number of messages left out between the root and the others.
	Earlier int
	// Gap says that the messages behind the root could not be read.
	Gap bool
}
