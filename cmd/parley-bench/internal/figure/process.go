package figure

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// clockTick is the unit of the times in /proc/PID/stat. It has been 1/100 s on every
// Linux for decades; see proc(5) and sysconf(3).
const clockTick = 10 * time.Millisecond

// Process is the state of a process.
type Process struct {
	name    string
	State   string        // one letter; T is stopped
	CPU     time.Duration // in user and kernel mode, including its children that have ended
	Memory  Memory
	Written int64 // bytes of files, counted when they are written to the cache of the system
}

// ReadProcess returns the zero process if the process has ended or the system has no
// /proc.
func ReadProcess(pid int) Process {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Process{}
	}
	stat, err := p.Stat()
	status, err2 := p.NewStatus()
	if err != nil || err2 != nil {
		return Process{}
	}
	io, _ := p.IO() // some systems do not have it
	ticks := int(stat.UTime+stat.STime) + stat.CUTime + stat.CSTime
	return Process{stat.Comm, stat.State, time.Duration(ticks) * clockTick, Memory{int64(status.VmRSS), int64(status.VmHWM)}, int64(io.WriteBytes)}
}

// PostgresCPU returns the CPU time of all PostgreSQL processes on this machine since
// their start. The first process of a server counts its children that have ended.
func PostgresCPU() (sum time.Duration) {
	all, _ := procfs.AllProcs() // no /proc means no process
	for _, p := range all {
		if one := ReadProcess(p.PID); one.name == "postgres" {
			sum += one.CPU
		}
	}
	return sum
}

// Memory is a process's resident memory in bytes: the current size and the peak.
type Memory struct{ Now, Peak int64 }

// String words both sizes in MB.
func (m Memory) String() string {
	return fmt.Sprintf("%s (peak %.0f)", Megabytes(m.Now), float64(m.Peak)/1e6)
}

// Megabytes words a number of bytes in whole MB, of 1e6 bytes each.
func Megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }
