package storage

import (
	"sync/atomic"
	"time"
)

// NewSteadyClock returns the clock of a store that one process uses; it may be called
// concurrently. The clock begins with the wall clock's time and continues with the monotonic
// clock. So no stored time moves away into the future if somebody sets the wall clock back.
// If the wall clock leads, the clock jumps forward to it: the monotonic clock stands still
// while the machine is suspended. A process that begins later has the wall clock's time again.
func NewSteadyClock() func() time.Time {
	begun := time.Now()
	return steady(func() (wall time.Time, age time.Duration) {
		now := time.Now()
		return now, now.Sub(begun)
	})
}

// steady returns the clock for a function that reads the wall clock, and the age of the
// process by the monotonic clock.
func steady(read func() (wall time.Time, age time.Duration)) func() time.Time {
	var begun atomic.Int64 // the greatest difference of the two, in nanoseconds since 1970
	return func() time.Time {
		wall, age := read()
		for {
			known, now := begun.Load(), wall.UnixNano()-int64(age)
			if now <= known || begun.CompareAndSwap(known, now) {
				return time.Unix(0, max(known, now)+int64(age)).UTC()
			}
		}
	}
}
