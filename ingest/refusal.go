package ingest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"parley/ingest/journal"
)

const (
	// refusalsLogged is how often the log hears that custody was refused: a store
	// without room refuses whatever comes, hundreds a second.
	refusalsLogged = time.Second
	// refusingFor is how long a refusal speaks for the store where nothing comes
	// after it: nobody may be sent here any more who could show that it is over.
	refusingFor = 5 * time.Second
)

// refusals are those of custody, lately.
type refusals struct {
	last atomic.Int64 // when the store last refused, in Unix nanoseconds; 0 where it took something since

	mu     sync.Mutex
	logged time.Time
	silent int // since then
}

// refused notes that there is no custody. Where only the answer is missing, the next
// payload may have one: that is nothing the store has said.
func (in *Ingest) refused(workspace string, err error) {
	now, r := time.Now(), &in.refusals
	if errors.Is(err, journal.ErrUnavailable) && !errors.Is(err, journal.ErrUnclear) {
		r.last.Store(now.UnixNano())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.logged) < refusalsLogged {
		r.silent++
		return
	}
	in.log.Warn("custody refused", "workspace", workspace, "others", r.silent, "err", err)
	r.logged, r.silent = now, 0
}

// over notes that there is custody again.
func (r *refusals) over() {
	if r.last.Load() != 0 {
		r.last.Store(0)
	}
}

// Refusing says whether the store refused custody a moment ago and has taken nothing
// since. A store that is full may still have room for less than a message.
func (in *Ingest) Refusing() bool {
	last := in.refusals.last.Load()
	return last != 0 && time.Since(time.Unix(0, last)) < refusingFor
}
