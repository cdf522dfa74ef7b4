package adaptertest

import (
	"math"
	"runtime"
	"testing"
)

// Work checks the work of reading payloads of n like parts, by the kind of the part: counted in allocated bytes,
// it grows with their number and not with its square. Read is a normaliser, which may not fail.
//
// Other allocations of the process only add to a count (with -race, a [sync.Pool] drops some of its items), so the
// smallest of up to five counts is the work.
func Work(t *testing.T, grows map[string]func(n int) []byte, read func(body []byte) error) {
	t.Helper()
	for name, grow := range grows {
		spent := func(n int) uint64 {
			body := grow(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := read(body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		spent(1)
		once, twice := uint64(math.MaxUint64), uint64(math.MaxUint64)
		for range 5 {
			once, twice = min(once, spent(4000)), min(twice, spent(8000))
			if twice <= 3*once {
				break
			}
		}
		if twice > 3*once {
			t.Errorf("%s: 4,000 parts allocate %d bytes, 8,000 parts %d", name, once, twice)
		}
	}
}
