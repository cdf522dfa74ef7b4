package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// percentile returns the smallest of the sorted times that p of all (0 to 1) do
// not exceed; 0 where there are none.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(p*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// times sums up how long calls took.
type times struct{ p50, p99, max time.Duration }

// summarize sorts all in place.
func summarize(all []time.Duration) times {
	slices.Sort(all)
	return times{percentile(all, 0.5), percentile(all, 0.99), percentile(all, 1)}
}

func (t times) String() string {
	return fmt.Sprintf("p50 %s  p99 %s  max %s", millis(t.p50), millis(t.p99), millis(t.max))
}

func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 2, 64) + " ms"
}

// median is of an odd or even number of values; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
