package commands

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// The daemon's live heap is a few MiB and the remembered windows, so the default of GOGC collects
// tens of times a second under load. The heap may grow to five times its live size before the next
// collection, but softMemory, or twice the live memory if that is more, bounds the whole.
const (
	heapGrowth = 400
	softMemory = 60 << 20
)

// collectLess sets the garbage collector for a small heap and a high rate of allocation. The
// environment variable GOGC overrides the growth, and GOMEMLIMIT the bound.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		boundMemory(0)
	}
}

// boundMemory sets the bound of the memory, and again after each collection. A fixed bound
// would make the collector run without end in a daemon that needs more, such as one with
// thousands of open streams.
func boundMemory(before int64) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(live)
	bound := max(softMemory, 2*int64(live[0].Value.Uint64()+live[1].Value.Uint64()))
	if bound != before {
		debug.SetMemoryLimit(bound)
	}
	collected := new([64]byte) // lives until the next collection
	runtime.AddCleanup(collected, boundMemory, bound)
}
