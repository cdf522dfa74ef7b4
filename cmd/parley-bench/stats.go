package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
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

// clockTick is the unit of the times in /proc/PID/stat. It has been 100 a second
// on every Linux for decades; see proc(5) and sysconf(3).
const clockTick = 10 * time.Millisecond

// cpu is how long the process has computed so far, in user and kernel mode.
func cpu(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time: %w", err)
	}
	return parseCPU(text)
}

// parseCPU reads utime and stime, the 14th and 15th field. The second one, a name
// in parentheses, may hold spaces and parentheses itself.
func parseCPU(stat []byte) (time.Duration, error) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0, fmt.Errorf("read the CPU time: %d fields after the name", len(fields))
	}
	var ticks int64
	for _, field := range []string{fields[user], fields[system]} {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// memory is a process's resident memory in bytes: now, and the most so far.
type memory struct{ now, peak int64 }

func (m memory) String() string {
	return fmt.Sprintf("%.0f MB (peak %.0f)", float64(m.now)/1e6, float64(m.peak)/1e6)
}

func resident(pid int) (memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("read the memory's size: %w", err)
	}
	return parseMemory(string(text))
}

// parseMemory reads VmRSS and VmHWM, in KiB.
func parseMemory(status string) (m memory, err error) {
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		target := map[string]*int64{"VmRSS": &m.now, "VmHWM": &m.peak}[name]
		if target == nil {
			continue
		}
		number, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		if *target, err = strconv.ParseInt(number, 10, 64); err != nil {
			return m, fmt.Errorf("read the memory's size: %w", err)
		}
		*target *= 1024
	}
	return m, nil
}
