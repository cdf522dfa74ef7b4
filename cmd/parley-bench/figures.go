package main

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/procfs"
)

// clockTick is the unit of the times in /proc/PID/stat. It has been 1/100 s on every
// Linux for decades; see proc(5) and sysconf(3).
const clockTick = 10 * time.Millisecond

// process is the state of a process.
type process struct {
	name   string
	state  string        // one letter; T is stopped
	cpu    time.Duration // in user and kernel mode, including its children that have ended
	memory memory
}

// readProcess returns the zero process if the process has ended or the system has no
// /proc.
func readProcess(pid int) process {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return process{}
	}
	stat, err := p.Stat()
	status, err2 := p.NewStatus()
	if err != nil || err2 != nil {
		return process{}
	}
	ticks := int(stat.UTime+stat.STime) + stat.CUTime + stat.CSTime
	return process{stat.Comm, stat.State, time.Duration(ticks) * clockTick, memory{int64(status.VmRSS), int64(status.VmHWM)}}
}

// postgresCPU returns the CPU time of all PostgreSQL processes on this machine since
// their start. The first process of a server counts its children that have ended.
func postgresCPU() (sum time.Duration) {
	all, _ := procfs.AllProcs() // no /proc means no process
	for _, p := range all {
		if one := readProcess(p.PID); one.name == "postgres" {
			sum += one.cpu
		}
	}
	return sum
}

// memory is a process's resident memory in bytes: the current size and the peak.
type memory struct{ now, peak int64 }

func (m memory) String() string {
	return fmt.Sprintf("%s (peak %.0f)", megabytes(m.now), float64(m.peak)/1e6)
}

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

// percentile returns the smallest of the sorted values that the share p (0 to 1) of all
// values does not exceed; 0 for no values.
func percentile[T time.Duration | float64](sorted []T, p float64) T {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(p*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// times summarizes the durations of many calls.
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

// round returns the duration since a time in whole milliseconds.
func round(begun time.Time) time.Duration { return time.Since(begun).Round(time.Millisecond) }

// median returns the lower middle value of an even number; 0 for no values.
func median(values []float64) float64 { return percentile(slices.Sorted(slices.Values(values)), 0.5) }
