package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc/PID/stat. It has been 1/100 s on every
// Linux for decades; see proc(5) and sysconf(3).
const clockTick = 10 * time.Millisecond

// process is the content of /proc/PID/stat.
type process struct {
	name  string
	state string        // one letter; T is stopped
	cpu   time.Duration // in user and kernel mode, including its children that have ended
}

// readProcess returns the zero process if the process has ended or the system has no
// /proc.
func readProcess(pid int) process {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // no text means no process
	return parseProcess(string(text))
}

// parseProcess reads the fields that proc(5) counts from 1. The second field, a name in
// parentheses, may contain spaces and parentheses itself. An incomplete text is the zero
// process.
func parseProcess(stat string) process {
	opened, closed := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if opened < 0 || closed < opened {
		return process{}
	}
	fields := strings.Fields(stat[closed+1:])
	const state, user, last = 0, 11, 14 // fields 3, and 14 to 17: utime, stime, cutime, cstime
	if len(fields) <= last {
		return process{}
	}
	var ticks int64
	for _, field := range fields[user : last+1] {
		n, _ := strconv.ParseInt(field, 10, 64) // the kernel writes only digits
		ticks += n
	}
	return process{stat[opened+1 : closed], fields[state], time.Duration(ticks) * clockTick}
}

// postgresCPU returns the CPU time of all PostgreSQL processes on this machine since
// their start. The first process of a server counts its children that have ended.
func postgresCPU() (sum time.Duration) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range stats {
		text, _ := os.ReadFile(path) // a process that has just ended has no text
		if p := parseProcess(string(text)); p.name == "postgres" {
			sum += p.cpu
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

// readMemory returns 0 if the process has ended or the system has no /proc.
func readMemory(pid int) memory {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // no text means no memory
	return parseMemory(string(text))
}

// parseMemory reads VmRSS and VmHWM, in KiB.
func parseMemory(status string) (m memory) {
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		target := map[string]*int64{"VmRSS:": &m.now, "VmHWM:": &m.peak}[fields[0]]
		if target != nil {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			*target = 1024 * kib
		}
	}
	return m
}

// percentile returns the smallest of the sorted times that the share p (0 to 1) of all
// times does not exceed; 0 for no times.
func percentile(sorted []time.Duration, p float64) time.Duration {
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

// median returns the mean of the two middle values of an even number; 0 for no values.
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
