package operator_test

import (
	"testing"
	"time"

	"parley/cmd/parley/internal/operator"
)

// TestSince reads durations and times, in the location of the reader.
func TestSince(t *testing.T) {
	t.Parallel()
	here := time.FixedZone("here", 2*60*60)
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, here)
	for text, want := range map[string]time.Time{
		"90m": now.Add(-90 * time.Minute), "7d": now.AddDate(0, 0, -7), "2w": now.AddDate(0, 0, -14), "1h30m": now.Add(-90 * time.Minute),
		"2026-11-27": time.Date(2026, 11, 27, 0, 0, 0, 0, here), "2026-11-27T09:00": time.Date(2026, 11, 27, 9, 0, 0, 0, here),
		"2026-11-27 09:00": time.Date(2026, 11, 27, 9, 0, 0, 0, here), "2026-11-27T09:00:00Z": time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC),
	} {
		if got, err := operator.Since(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "7", "d", "-1h", "yesterday", "2026-13-01"} {
		if got, err := operator.Since(text, now); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}
