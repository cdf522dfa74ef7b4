package backfill_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// leads sets the clock of the workspace, beside the platform's.
func (w *world) leads(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.suspended = by
}

// TestAClockThatLedAndWasSetRight loses no message: none of the time while it led, and none after.
func TestAClockThatLedAndWasSetRight(t *testing.T) {
	for name, lead := range map[string]time.Duration{"an hour": time.Hour, "half a day": 12 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) { w.leads(lead) }, func(w *world) {
				w.up()
				advance(time.Minute) // the watermark leads now
				w.Down()
				w.change(func() { w.arrived, w.said["a"] = 30, []int{70, 80} }) // without a connection
				advance(30 * time.Second)
				w.leads(0)
				w.up()
				advance(time.Minute)
				synctest.Wait()
				if !slices.Contains(w.known(), "a/70") || !slices.Contains(w.known(), "a/80") {
					t.Errorf("missed messages are not read: %q", w.history())
				}
				w.Down()
				w.change(func() { w.said["b"] = []int{160} })
				advance(30 * time.Second)
				w.up()
				advance(time.Minute)
				synctest.Wait()
				if !slices.Contains(w.known(), "b/160") {
					t.Errorf("later missed messages are not read: %q", w.history())
				}
			})
		})
	}
}

// TestAClockThatLedBeforeTheStart pulls the watermark back.
func TestAClockThatLedBeforeTheStart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.watermark, w.arrived = w.at(12*3600), -100
		w.said["a"] = []int{-50}
	}, func(w *world) {
		w.up()
		advance(time.Minute)
		if !slices.Contains(w.known(), "a/-50") {
			t.Errorf("missed messages are not read: %q", w.history())
		}
	})
}

// TestAClockThatLags reads the messages that the platform's clock dates after the end of the gap.
func TestAClockThatLags(t *testing.T) {
	inWorld(t, func(w *world) {
		w.leads(-12 * time.Hour)
		w.watermark = w.at(-12*3600 - 300)
		w.said["a"] = []int{-20}
	}, func(w *world) {
		w.up()
		advance(time.Minute)
		if !slices.Contains(w.known(), "a/-20") {
			t.Errorf("missed messages are not read: %q", w.history())
		}
	})
}

// TestAStepBackDuringAGap: a disconnect that our clock puts into the future is one since the last
// known arrival.
func TestAStepBackDuringAGap(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.up()
		advance(time.Minute)
		w.Accepted("a", false)
		lost := w.now().Add(12 * time.Hour) // by the clock of that time
		w.change(func() { w.said["a"] = []int{65} })
		advance(10 * time.Second)
		w.Missed("", lost)
		advance(time.Minute)
		if !slices.Contains(w.known(), "a/65") {
			t.Errorf("missed messages are not read: %q", w.history())
		}
	})
}
