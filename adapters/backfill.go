package adapters

import (
	"context"
	"time"

	"parley/ingest/event"
)

// Backfiller is an adapter that can read missed messages. Its calls keep to the
// platform's pace, however long that takes, and may run concurrently. They fail with
// *RefusedError if only a change by the operator, other than new credentials, makes the
// messages readable; the caller does not try again then.
type Backfiller interface {
	// Channels returns the channels whose messages reach us.
	Channels(ctx context.Context) ([]string, error)
	// Began returns the thread's channel and the platform's time of its first message; a
	// zero time is older than any gap. It returns false if no message of the thread can
	// be missed. Pure.
	Began(thread event.ThreadKey) (channel string, at time.Time, ok bool)
	// ReadThread hands over the thread's messages in the gap, oldest first.
	ReadThread(ctx context.Context, thread event.ThreadKey, read Reading) error
	// ReadChannel hands over the channel's messages in the gap, oldest first, except
	// those of the threads that it returns. These threads have further messages in the
	// gap; the caller reads them with ReadThread.
	ReadChannel(ctx context.Context, read Reading) (Found, error)
}

// SlowHistory is a Backfiller whose platform may show a message in its history, or name a
// channel, later than it happened.
type SlowHistory interface {
	// HistoryLag returns the time after which everything is shown. Pure.
	HistoryLag() time.Duration
}

// Reading is one read of a Backfiller.
type Reading struct {
	Gap event.Gap
	// Messages bounds the messages that ReadChannel hands over; it hands over the newest.
	Messages int
	// Urgent is closed once a turn waits for the read. Until then, the read leaves a
	// fifth of the platform's calls to others.
	Urgent <-chan struct{}
	// Hand takes messages of one thread, maybe none: the thread is read then. ReadChannel
	// hands over all its messages of a thread in one call. An error of Hand ends the read,
	// which returns it.
	Hand func(thread event.ThreadKey, list []Missed) error
}

// Found is the rest of ReadChannel's result.
type Found struct {
	Threads []event.ThreadKey
	Cut     bool // ReadChannel left messages out, to keep within the bound
}

// Missed is a possibly missed message, as envelopes with the Transport event.Backfilled
// and the keys of the platform's own events.
type Missed struct {
	// New is the event of the message. It is nil if the message is older than the gap, or
	// was deleted.
	New *event.Envelope
	// Change is the event of the message's last edit, or of its deletion; nil if there is
	// neither. It has no effect on a message that New makes known.
	Change *event.Envelope
}
