package main

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseProcess(t *testing.T) {
	stat := "4242 (a ) b) T 17 4242 4242 0 -1 4194560 900 0 0 0 123 45 6 7 20 0 9 0 100 1000 200"
	got := parseProcess(stat)
	want := process{name: "a ) b", state: "T", cpu: 181 * clockTick}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(process{})); diff != "" {
		t.Error(diff)
	}
	for _, incomplete := range []string{"1 (x) S 1", "", "1 )x( S"} {
		if got := parseProcess(incomplete); got != (process{}) {
			t.Errorf("%+v from %q, want the zero process", got, incomplete)
		}
	}
}

func TestParseMemory(t *testing.T) {
	got := parseMemory("Name:\tparley\nVmHWM:\t   2048 kB\nVmRSS:\t   1024 kB\nThreads:\t9\n")
	if want := (memory{now: 1 << 20, peak: 2 << 20}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestFiguresOfThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc here")
	}
	if memory := readMemory(os.Getpid()); memory.now <= 0 || memory.peak < memory.now {
		t.Errorf("memory %+v", memory)
	}
	if p := readProcess(os.Getpid()); p.name == "" || p.state == "" {
		t.Errorf("process %+v", p)
	}
	if got := readMemory(-1); got != (memory{}) {
		t.Errorf("memory %+v of a process that does not exist", got)
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
	for want, values := range map[float64][]float64{0: nil, 3: {9, 3, 1}, 2.5: {1, 4, 3, 2}} {
		if got := median(values); got != want {
			t.Errorf("%v of %v, want %v", got, values, want)
		}
	}
}
