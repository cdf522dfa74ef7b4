// Package life is the life of a server: the goroutines that it waits for, and the signal that ends them.
package life

import (
	"context"
	"sync"
	"time"
)

// Life is the time in which a server runs, with its goroutines.
type Life struct {
	Stopped chan struct{}  // closed by End
	Running sync.WaitGroup // the goroutines and requests of the server

	mu    sync.Mutex
	ended bool
}

// New returns the life of a server that runs.
func New() *Life { return &Life{Stopped: make(chan struct{})} }

// Enter registers work that the server waits for before it is closed; the caller ends it with
// Running.Done. It returns false if the server is closed.
func (l *Life) Enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.Running.Add(1)
	}
	return !l.ended
}

// End closes Stopped. The caller may then wait for the running work.
func (l *Life) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		close(l.Stopped)
	}
}

// After is time.After, but returns nil for a duration of zero.
func After(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// Pass waits for the timer and the signal; either may be nil. It returns false if the server
// stopped first.
func (l *Life) Pass(timer <-chan time.Time, signal <-chan struct{}) bool {
	if timer != nil {
		select {
		case <-timer:
		case <-l.Stopped:
			return false
		}
	}
	if signal != nil {
		select {
		case <-signal:
		case <-l.Stopped:
			return false
		}
	}
	return true
}

// Within returns a context that ends after d or when the server stops.
func (l *Life) Within(d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	l.Running.Go(func() {
		select {
		case <-l.Stopped:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}
