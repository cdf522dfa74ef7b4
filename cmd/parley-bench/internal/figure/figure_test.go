package figure

import (
	"os"
	"testing"
	"time"
)

func TestFiguresOfThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc here")
	}
	if p := ReadProcess(os.Getpid()); p.name == "" || p.State == "" || p.Memory.Now <= 0 || p.Memory.Peak < p.Memory.Now {
		t.Errorf("process %+v", p)
	}
	if got := ReadProcess(-1); got != (Process{}) {
		t.Errorf("%+v of a process that does not exist", got)
	}
}

func TestPercentiles(t *testing.T) {
	var all []time.Duration
	for n := 200; n > 0; n-- {
		all = append(all, time.Duration(n))
	}
	if got, want := Summarize(all), (Times{100, 198, 200}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Summarize([]time.Duration{7}); got != (Times{7, 7, 7}) {
		t.Errorf("one duration: %v", got)
	}
	if got := Summarize(nil); got != (Times{}) {
		t.Errorf("no duration: %v", got)
	}
}

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 3: {9, 3, 1}, 2: {1, 4, 3, 2}} {
		if got := Median(values); got != want {
			t.Errorf("%v of %v, want %v", got, values, want)
		}
	}
}
