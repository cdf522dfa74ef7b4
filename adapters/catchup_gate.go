package adapters

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"parley/ingest/event"
)

const (
	// asideLimit is how long what comes in at a place waits for what was said before
	// it, where nobody is reading that.
	asideLimit = 10 * time.Second
	// readingLimit is how long it waits while that is being read: at a platform's pace
	// a hundred threads take two minutes, and an answer that comes before an earlier
	// one can't be taken back.
	readingLimit = 5 * time.Minute
)

// gate knows where something is still to be read that was said before what comes
// in. Who keeps something aside has it locked for reading, so that a place is opened
// only once all that was kept aside there has been let in.
type gate struct {
	closed atomic.Bool // somewhere; the usual case costs no more than this

	mu     sync.RWMutex
	shuts  int       // how often every place was closed
	sure   int       // after which of these it was said where something is to be read
	since  time.Time // when it was unsure first
	places map[string]bool

	waiting sync.Mutex
	waits   map[string]time.Time // since when something is kept aside at a place
}

// shut closes every place, until it is known which are to be read.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shuts == g.sure {
		g.since = time.Now()
	}
	g.shuts++
	g.closed.Store(true)
}

// unsure says that it is not known yet which places are to be read, and after which
// shut that is asked.
func (g *gate) unsure() (shut int, unsure bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.shuts, g.shuts > g.sure
}

// close closes some places, and opens none.
func (g *gate) close(places map[string]bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.places = places
	g.closed.Store(g.shuts > g.sure || len(places) > 0)
}

// aside says whether what comes in at a place is to be kept aside, until done is called.
func (g *gate) aside(place string) (done func(), aside bool) {
	if !g.closed.Load() {
		return nil, false
	}
	g.mu.RLock()
	if g.shuts == g.sure && !g.places[place] {
		g.mu.RUnlock()
		return nil, false
	}
	g.waiting.Lock()
	defer g.waiting.Unlock()
	if g.waits == nil {
		g.waits = map[string]time.Time{}
	}
	if g.waits[place].IsZero() {
		g.waits[place] = time.Now()
	}
	return g.mu.RUnlock, true
}

// first is the place, of those that still are to be read, where something has been kept
// aside for the longest; the first one where nothing is.
func (g *gate) first(gaps []event.Gap) event.Gap {
	g.waiting.Lock()
	defer g.waiting.Unlock()
	first, longest := gaps[0], time.Time{}
	for _, gap := range gaps {
		if since := g.waits[gap.Place]; !since.IsZero() && (longest.IsZero() || since.Before(longest)) {
			first, longest = gap, since
		}
	}
	return first
}

// overdue says whether it is unsure for too long where something is to be read, and
// at which places something was kept aside for longer than the limit.
func (g *gate) overdue(limit time.Duration) (unsure bool, places map[string]bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	g.waiting.Lock()
	defer g.waiting.Unlock()
	places = map[string]bool{}
	for place, since := range g.waits {
		if time.Since(since) >= limit {
			places[place] = true
		}
	}
	return g.shuts > g.sure && time.Since(g.since) >= asideLimit, places
}

// open opens the places that which names, once what was kept aside there has been
// let in. It is sure then, after so many shuts, that no others are to be read than
// those which stay closed; as long as nobody is, nothing is opened.
func (g *gate) open(ctx context.Context, sure int, release func(context.Context, func(string) bool) error, which func(place string) bool) error {
	if shuts, unsure := g.unsure(); unsure && sure < shuts {
		return nil
	}
	if err := release(ctx, which); err != nil { // most of it, while more is kept aside
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sure = max(g.sure, sure); g.sure < g.shuts {
		return nil
	}
	if err := release(ctx, which); err != nil {
		return err
	}
	g.waiting.Lock()
	defer g.waiting.Unlock()
	maps.DeleteFunc(g.places, func(place string, _ bool) bool { return which(place) })
	maps.DeleteFunc(g.waits, func(place string, _ time.Time) bool { return which(place) })
	g.closed.Store(len(g.places) > 0)
	return nil
}
