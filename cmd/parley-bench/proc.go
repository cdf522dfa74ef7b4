package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc/PID/stat. It has been 100 a second
// on every Linux for decades; see proc(5) and sysconf(3).
const clockTick = 10 * time.Millisecond

// process is what /proc/PID/stat tells of a process.
type process struct {
	name   string
	state  string // one letter; T is stopped
	parent int
	cpu    time.Duration // in user and kernel mode, so far
	reaped time.Duration // the same of its children that have ended
}

func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, fmt.Errorf("read a process's state: %w", err)
	}
	return parseProcess(text)
}

// parseProcess reads the fields that proc(5) counts from 1. The second one, a name
// in parentheses, may hold spaces and parentheses itself.
func parseProcess(stat []byte) (process, error) {
	opened, closed := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if opened < 0 || closed < opened {
		return process{}, fmt.Errorf("read a process's state: no name in %q", stat)
	}
	fields := strings.Fields(string(stat[closed+1:]))
	const state, parent, user, last = 3 - 3, 4 - 3, 14 - 3, 17 - 3
	if len(fields) <= last {
		return process{}, fmt.Errorf("read a process's state: %d fields after the name", len(fields))
	}
	var numbers [5]int64 // the parent; utime, stime, cutime, cstime
	for i, field := range append([]string{fields[parent]}, fields[user:last+1]...) {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return process{}, fmt.Errorf("read a process's state: %w", err)
		}
		numbers[i] = n
	}
	return process{
		name: string(stat[opened+1 : closed]), state: fields[state], parent: int(numbers[0]),
		cpu: time.Duration(numbers[1]+numbers[2]) * clockTick, reaped: time.Duration(numbers[3]+numbers[4]) * clockTick,
	}, nil
}

// cpu is how long the process has computed so far, in user and kernel mode.
func cpu(pid int) (time.Duration, error) {
	p, err := readProcess(pid)
	return p.cpu, err
}

// familyCPU is what a process and its children, also those that have ended, have
// computed so far; 0 where that can't be read.
func familyCPU(pid int) time.Duration {
	for {
		before, err := readProcess(pid)
		if err != nil {
			return 0
		}
		living := childrenCPU(pid)
		after, err := readProcess(pid)
		if err != nil {
			return 0
		}
		if before.reaped == after.reaped { // else one has ended meanwhile, and may be missing
			return after.cpu + after.reaped + living
		}
	}
}

// childrenCPU is what the living children of a process have computed so far.
func childrenCPU(pid int) (sum time.Duration) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well-formed
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		if child, err := parseProcess(text); err == nil && child.parent == pid {
			sum += child.cpu
		}
	}
	return sum
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
