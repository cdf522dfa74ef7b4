package main

import (
	"os"
	"testing"
	"time"
)

func TestFiguresOfThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc here")
	}
	if p := readProcess(os.Getpid()); p.name == "" || p.state == "" || p.memory.now <= 0 || p.memory.peak < p.memory.now {
		t.Errorf("process %+v", p)
	}
	if got := readProcess(-1); got != (process{}) {
		t.Errorf("%+v of a process that does not exist", got)
	}
}

func TestPercentiles(t *testing.T) {
	var all []time.Duration
	for n := 200; n > 0; n-- {
		all = append(all, time.Duration(n))
	}
	if got, want := summarize(all), (times{100, 198, 200}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := summarize([]time.Duration{7}); got != (times{7, 7, 7}) {
		t.Errorf("one duration: %v", got)
	}
	if got := summarize(nil); got != (times{}) {
		t.Errorf("no duration: %v", got)
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 3: {9, 3, 1}, 2: {1, 4, 3, 2}} {
		if got := median(values); got != want {
			t.Errorf("%v of %v, want %v", got, values, want)
		}
	}
}
