package adapters

import (
	"context"
	"time"

	"parley/ingest/event"
)

// Historian is an adapter that can read what was said while nobody listened. Both
// methods keep to the platform's pace, however long that takes, and fail with
// *RefusedError where that can't be read without a change by the operator, and is
// given up. Refused credentials are no such error: with others, it can be read.
type Historian interface {
	// Places are the channels whose messages reach us.
	Places(ctx context.Context) ([]string, error)
	// Missed hands over what was said in the gap, from its oldest message on: the
	// newest bounds.Messages of them. Cut says that there were more.
	Missed(ctx context.Context, gap event.Gap, bounds Bounds, hand Hand) (cut bool, err error)
}

// Bounds are those of reading one gap.
type Bounds struct {
	Messages int
	// Threads are those of the workspace in which something was said of late: what
	// was said there may not be seen in its channel.
	Threads []event.ThreadKey
}

// Hand takes an envelope of a message of that time, with the Transport
// event.CatchUp and the keys that it would have had. Known says that it was in
// custody before. The message may be handed over again after an error.
type Hand func(at time.Time, envelope event.Envelope) (known bool, err error)

// Marks is where it is kept how far a workspace has been read. The journal is one.
type Marks interface {
	// Mark is up to when everything has come in, or is in a gap; zero for never.
	Mark(ctx context.Context, workspace string) (time.Time, error)
	// SetMark moves the mark on, once these gaps are stored: a place has one, which
	// is widened.
	SetMark(ctx context.Context, workspace string, mark time.Time, gaps []event.Gap) error
	// Gaps are what is still to be read.
	Gaps(ctx context.Context, workspace string) ([]event.Gap, error)
	// Shrink lets a place's gap begin at a later time; at its end it is gone.
	Shrink(ctx context.Context, workspace, place string, to time.Time) error
}

// CatchUpConfig bounds what is read of what was missed. Start from
// DefaultCatchUpConfig.
type CatchUpConfig struct {
	// MaxAge is how old a message may be to be read, and to ask for a run; 0 reads none.
	MaxAge time.Duration `yaml:"max_age"`
	// Messages is how many are read of one channel at the most, the newest.
	Messages int `yaml:"messages"`
}

// DefaultCatchUpConfig is what holds where the configuration says nothing.
func DefaultCatchUpConfig() CatchUpConfig {
	return CatchUpConfig{MaxAge: 24 * time.Hour, Messages: 1000}
}

const (
	// maxCatchUp bounds how far back is read. The keys by which payloads are known
	// again are kept for longer.
	maxCatchUp = 7 * 24 * time.Hour
	// maxMissed bounds what is read of one channel: it is in memory for a while.
	maxMissed = 10_000
)

// Validate returns every fault, by key, without any value.
func (c CatchUpConfig) Validate() event.FieldErrors {
	var faults event.FieldErrors
	check := func(ok bool, field, words string) {
		if !ok {
			faults = append(faults, event.FieldError{Field: field, Message: words})
		}
	}
	check(c.MaxAge >= 0 && c.MaxAge <= maxCatchUp, "max_age", "must be between 0s, which switches it off, and 7d")
	check(c.Messages > 0 && c.Messages <= maxMissed, "messages", "must be between 1 and 10000")
	return faults
}
