package turn_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
)

// reading is a History that reads missed messages for the time lasts.
type reading struct {
	lasts time.Duration
	gap   bool
	// history is called before a thread's first turn; nil for none.
	history func() error

	mu    sync.Mutex
	begun time.Time
	asked int
}

func (r *reading) Ready(_ *threads.Claim, wake func()) (ready, gap bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if r.begun.IsZero() {
		r.begun = time.Now()
		time.AfterFunc(r.lasts, wake)
	}
	if time.Since(r.begun) < r.lasts {
		return false, false
	}
	return true, r.gap
}

// readies returns the number of calls of Ready.
func (r *reading) readies() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

func (r *reading) ReadHistory(_ context.Context, _ *threads.Claim, run *runs.Run, _ int) error {
	if r.history == nil {
		return nil
	}
	run.Fresh = false
	return r.history()
}

// TestATurnWaitsForItsMissedMessages, and its block says if some could not be read.
func TestATurnWaitsForItsMissedMessages(t *testing.T) {
	for name, gap := range map[string]bool{"read": false, "not read": true} {
		t.Run(name, func(t *testing.T) {
			history := &reading{lasts: 5*time.Second + 300*time.Millisecond, gap: gap}
			inBubble(t, func(d *fixture) { d.history = history }, func(d *fixture) {
				begun := time.Now()
				d.asks("1", "one")
				pass(10 * time.Second)
				same(t, "turns", d.agent.said(), [][]string{{"one"}})
				if waited := d.agent.times[0].Sub(begun); waited.Round(100*time.Millisecond) != history.lasts {
					t.Errorf("the turn began after %v", waited)
				}
				d.mu.Lock()
				defer d.mu.Unlock()
				same(t, "the run's gap", d.runs[0].Gap, gap)
			})
		})
	}
}
