package commands

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestTheBoundFollowsLiveMemory checks that a process that needs more than softMemory has a
// higher bound while it needs it.
func TestTheBoundFollowsLiveMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	boundMemory(0)
	for debug.SetMemoryLimit(-1) != softMemory {
		runtime.GC() // the bound follows soon after it
	}
	ballast := make([]byte, softMemory)
	for debug.SetMemoryLimit(-1) < 2*softMemory {
		runtime.GC()
	}
	runtime.KeepAlive(ballast)
}
