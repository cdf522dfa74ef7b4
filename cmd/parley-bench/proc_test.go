package main

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAProcessIsReadBehindAnOddName(t *testing.T) {
	stat := "4242 (a ) b) T 17 4242 4242 0 -1 4194560 900 0 0 0 123 45 6 7 20 0 9 0 100 1000 200"
	got, err := parseProcess([]byte(stat))
	want := process{name: "a ) b", state: "T", parent: 17, cpu: 168 * clockTick, reaped: 13 * clockTick}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(process{})); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, cut := range []string{"1 (x) S 1", "", "1 )x( S"} {
		if got, err := parseProcess([]byte(cut)); err == nil {
			t.Errorf("%+v of %q", got, cut)
		}
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

func TestAFamilysCPUIncludesItsHead(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc here")
	}
	for began := time.Now(); time.Since(began) < 3*clockTick; { // some ticks of work
	}
	own, err := cpu(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if family := familyCPU(os.Getpid()); family < own || own == 0 {
		t.Errorf("the family %v, this process %v", family, own)
	}
	if got := familyCPU(-1); got != 0 {
		t.Errorf("of nobody: %v", got)
	}
}
