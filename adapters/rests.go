package adapters

import (
	"sync"
	"time"
)

// Rests are the names of methods or features that rest, such as a method after a rate limit
// of ScopeMethod. It remembers every name, so there must be few. The zero value is ready. It
// is safe for concurrent use.
type Rests struct{ until sync.Map } // of time.Time, by name

// Rest lets a name rest until a time.
func (r *Rests) Rest(name string, until time.Time) { r.until.Store(name, until) }

// Left returns the time that is left of a name's rest; 0 if the name does not rest.
func (r *Rests) Left(name string, now time.Time) time.Duration {
	until, _ := r.until.Load(name)
	end, _ := until.(time.Time)
	return max(end.Sub(now), 0)
}
