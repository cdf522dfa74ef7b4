package work

import (
	"context"
	"errors"
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/wake"
)

// insistEvery is the wait between two calls of Insist.
const insistEvery = 250 * time.Millisecond

// Insist calls f, which writes data that exists only in memory, repeatedly while the
// store is unavailable. It returns the last call's error after ctx or the time within has
// ended.
func Insist(ctx context.Context, within time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		err := f()
		if !storage.Unavailable(err) || errors.Is(err, storage.ErrClosed) || !wake.After(ctx, insistEvery) {
			return err
		}
	}
}
