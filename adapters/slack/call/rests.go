package call

import (
	"sync"
	"time"
)

// rests are the names of methods or features that rest, such as a method after its rate limit.
// It remembers every name, so there must be few. The zero value is ready. It is safe for
// concurrent use.
type rests struct{ until sync.Map } // of time.Time, by name

// rest lets a name rest until a time.
func (r *rests) rest(name string, until time.Time) { r.until.Store(name, until) }

// left returns the time that is left of a name's rest; 0 if the name does not rest.
func (r *rests) left(name string, now time.Time) time.Duration {
	until, _ := r.until.Load(name)
	end, _ := until.(time.Time)
	return max(end.Sub(now), 0)
}
