// Package figure measures and words the figures of a run: percentiles of times, and the CPU time and
// memory of processes.
package figure

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// percentile returns the smallest of the sorted values that the share p (0 to 1) of all
// values does not exceed; 0 for no values.
func percentile[T time.Duration | float64](sorted []T, p float64) T {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(p*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Times summarizes the durations of many calls.
type Times struct{ P50, P99, Max time.Duration }

// Summarize sorts all in place.
func Summarize(all []time.Duration) Times {
	slices.Sort(all)
	return Times{percentile(all, 0.5), percentile(all, 0.99), percentile(all, 1)}
}

// String names the percentiles in milliseconds.
func (t Times) String() string {
	return fmt.Sprintf("p50 %s  p99 %s  max %s", Millis(t.P50), Millis(t.P99), Millis(t.Max))
}

// Millis words a duration in milliseconds, with two decimals.
func Millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 2, 64) + " ms"
}

// Round returns the duration since a time in whole milliseconds.
func Round(begun time.Time) time.Duration { return time.Since(begun).Round(time.Millisecond) }

// Median returns the lower middle value of an even number; 0 for no values.
func Median(values []float64) float64 { return percentile(slices.Sorted(slices.Values(values)), 0.5) }
