package main

import (
	"os"
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

func TestCPUIsReadBehindAnOddName(t *testing.T) {
	stat := "4242 (a ) b) S 1 4242 4242 0 -1 4194560 900 0 0 0 123 45 6 7 20 0 9 0 100 1000 200"
	if got, err := parseCPU([]byte(stat)); got != 168*clockTick || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := parseCPU([]byte("1 (x) S 1")); err == nil {
		t.Errorf("%v of a line that is cut off", got)
	}
}

func TestMemoryIsRead(t *testing.T) {
	got, err := parseMemory("Name:\tparley\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\nThreads:\t9\n")
	if want := (memory{now: 1 << 20, peak: 2 << 20}); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestThisProcessHasFigures(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc here")
	}
	memory, err := resident(os.Getpid())
	if err != nil || memory.now <= 0 || memory.peak < memory.now {
		t.Errorf("%+v, %v", memory, err)
	}
	if _, err := cpu(os.Getpid()); err != nil {
		t.Error(err)
	}
}
