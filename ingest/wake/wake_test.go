package wake_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/ingest/wake"
)

func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if !wake.After(t.Context(), time.Minute) || time.Since(begun) != time.Minute {
			t.Errorf("After ended after %v", time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if wake.After(ctx, time.Hour) || time.Since(begun) != time.Minute+time.Second {
			t.Errorf("After did not end with its context, but after %v", time.Since(begun))
		}
	})
}

func TestSignalHoldsOneValue(t *testing.T) {
	s := wake.NewSignal()
	s.Clear() // it is not set
	s.Set()
	s.Set()
	if len(s) != 1 {
		t.Errorf("%d values, want 1", len(s))
	}
	s.Clear()
	if len(s) != 0 {
		t.Errorf("%d values after Clear", len(s))
	}
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{-1: time.Second, 0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 6: time.Minute, 1000: time.Minute} {
		if got := wake.Backoff(time.Second, time.Minute, failures); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
	}
}
