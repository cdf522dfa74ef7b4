package adapters

import (
	"context"
	"time"

	"parley/ingest/event"
)

// Backfiller is an adapter that can read messages that were missed. Its calls keep to
// the platform's pace, however long that takes, and may run concurrently. They fail
// with *RefusedError if only a change by the operator, other than new credentials,
// makes the messages readable; nobody tries again then.
type Backfiller interface {
	// Channels returns the channels whose messages reach us.
	Channels(ctx context.Context) ([]string, error)
	// Began returns the thread's channel and the platform's time of its first message;
	// a zero time is older than any gap. It returns false if no message of the thread
	// can be missed. Pure.
	Began(thread event.ThreadKey) (channel string, at time.Time, ok bool)
	// ReadThread hands over the thread's messages in the gap, from the oldest on.
	ReadThread(ctx context.Context, thread event.ThreadKey, read Reading) error
	// ReadChannel hands over the channel's messages in the gap, from the oldest on,
	// without the messages of the threads that it returns. Those threads have further
	// messages in the gap, and are for ReadThread.
	ReadChannel(ctx context.Context, read Reading) (Found, error)
}

// Reading is one read of a Backfiller.
type Reading struct {
	Gap event.Gap
	// Messages bounds the messages that ReadChannel hands over, to the newest ones.
	Messages int
	// Urgent is closed once a turn waits for the read. Until then, the read leaves a
	// fifth of the platform's calls to others.
	Urgent <-chan struct{}
	// Hand takes messages of one thread: of ReadChannel all that it hands over of the
	// thread. An error of it ends the read, which returns it.
	Hand func(thread event.ThreadKey, list []Missed) error
}

// Found is what ReadChannel found beside the messages that it handed over.
type Found struct {
	Threads []event.ThreadKey
	Cut     bool // there were more messages than the bound
}

// Missed is a message that may have been missed, as envelopes with the Transport
// event.Backfilled and the keys of the platform's own events.
type Missed struct {
	// New is the event of the message; nil if the message is older than the gap, or gone.
	New *event.Envelope
	// Change is the event of its last edit, or of its removal; nil for none. It has no effect on a
	// message that New makes known.
	Change *event.Envelope
}
