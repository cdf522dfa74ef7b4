package main

import (
	"testing"
	"time"
)

func TestPercentiles(t *testing.T) {
	var all []time.Duration
	for n := 200; n > 0; n-- {
		all = append(all, time.Duration(n))
	}
	if got, want := summarize(all), (times{100, 198, 200}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := summarize([]time.Duration{7}); got != (times{7, 7, 7}) {
		t.Errorf("of one: %v", got)
	}
	if got := summarize(nil); got != (times{}) {
		t.Errorf("of none: %v", got)
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 3: {9, 3, 1}, 2.5: {1, 4, 3, 2}} {
		if got := median(values); got != want {
			t.Errorf("%v of %v, want %v", got, values, want)
		}
	}
}
