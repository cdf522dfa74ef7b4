package operator

import (
	"sync"

	"parley/ingest/wake"
)

// ringSize is the number of values that a ring keeps.
const ringSize = 2000

// ring keeps the newest values and wakes its readers. It is safe for concurrent use. The zero value is
// empty.
type ring[T any] struct {
	mu      sync.Mutex
	values  []T   // the newest ones, in a circle once there are ringSize
	added   int64 // the number of all values so far
	readers wake.Group[struct{}]
}

// add adds a value. It never waits for a reader.
func (r *ring[T]) add(value T) {
	r.mu.Lock()
	if len(r.values) < ringSize {
		r.values = append(r.values, value)
	} else {
		r.values[r.added%ringSize] = value
	}
	r.added++
	r.mu.Unlock()
	r.readers.Wake(struct{}{})
}

// after returns at most limit of the kept values behind a position, in order, and the position of the
// last one. The position of the first value is 1.
func (r *ring[T]) after(position int64, limit int) (values []T, last int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := max(position, r.added-int64(len(r.values)))
	if from > r.added { // of a process that has ended
		from = r.added - int64(len(r.values))
	}
	for at := from; at < r.added && len(values) < limit; at++ {
		values = append(values, r.values[at%ringSize])
	}
	return values, from + int64(len(values))
}

// wait returns a signal that each later add sets. The caller ends with stop.
func (r *ring[T]) wait() (woken wake.Signal, stop func()) { return r.readers.Wait(struct{}{}) }
