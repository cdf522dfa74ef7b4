// Package wake wakes goroutines, after a time or at a signal.
package wake

import (
	"context"
	"time"
)

// After waits for d, and reports whether ctx still lasts. It returns at once when ctx ends.
func After(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Signal wakes the goroutine that receives from it. It holds one value, so a goroutine that looks
// late sees several calls of Set as one.
type Signal chan struct{}

// NewSignal returns a signal that is not set.
func NewSignal() Signal { return make(Signal, 1) }

// Set wakes the goroutine. It never waits, and may be called concurrently.
func (s Signal) Set() {
	select {
	case s <- struct{}{}:
	default: // the goroutine has not taken the last value yet
	}
}

// Clear takes back a value that the goroutine has not taken yet.
func (s Signal) Clear() {
	select {
	case <-s:
	default:
	}
}
