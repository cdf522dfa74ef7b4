// Package wake wakes goroutines, after a time or at a signal.
package wake

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// After waits for d, and reports whether ctx still lasts. It returns at once when ctx ends.
func After(ctx context.Context, d time.Duration) bool {
	if d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// Backoff returns the wait after a number of earlier failures: first, doubled with each of them, and
// at most most.
func Backoff(first, most time.Duration, failures int) time.Duration {
	return min(first<<min(max(failures, 0), 20), most)
}

// Jitter returns a random duration below most, so that clients that failed together do not retry together.
func Jitter(most time.Duration) time.Duration { return rand.N(max(most, 1)) }

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

// Loop calls f at once, at each signal and after each time of every, until ctx ends.
func (s Signal) Loop(ctx context.Context, every time.Duration, f func(context.Context)) {
	for tick := time.Tick(every); ; {
		f(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick:
		case <-s:
		}
	}
}

// Clear takes back a value that the goroutine has not taken yet.
func (s Signal) Clear() {
	select {
	case <-s:
	default:
	}
}

// Group wakes the goroutines that wait for a key. The zero value is ready. It is safe for
// concurrent use.
type Group[K comparable] struct {
	mu      sync.Mutex
	waiting map[K]map[Signal]bool
}

// Wait returns a signal that each later Wake of the key sets. The caller ends with stop.
func (g *Group[K]) Wait(key K) (woken Signal, stop func()) {
	woken = NewSignal()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == nil {
		g.waiting = map[K]map[Signal]bool{}
	}
	if g.waiting[key] == nil {
		g.waiting[key] = map[Signal]bool{}
	}
	g.waiting[key][woken] = true
	return woken, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if delete(g.waiting[key], woken); len(g.waiting[key]) == 0 {
			delete(g.waiting, key)
		}
	}
}

// Wake wakes the goroutines that wait for a key.
func (g *Group[K]) Wake(key K) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for signal := range g.waiting[key] {
		signal.Set()
	}
}

// WakeAll wakes all goroutines.
func (g *Group[K]) WakeAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, signals := range g.waiting {
		for signal := range signals {
			signal.Set()
		}
	}
}
