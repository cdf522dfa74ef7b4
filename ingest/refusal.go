package ingest

import (
	"errors"
	"sync"
	"time"

	"parley/ingest/journal"
)

const (
	// refusalsLogged is the shortest time between two log lines about refusals: a full
	// store refuses hundreds of payloads a second.
	refusalsLogged = time.Second
	// refusingFor is how long the store counts as refusing after its last refusal. The
	// platform may send no further payload until the refusals are over.
	refusingFor = 5 * time.Second
)

// refusals are the recent payloads that were not accepted.
type refusals struct {
	mu     sync.Mutex
	last   time.Time // time of the store's last refusal; zero if the store has accepted a payload since
	logged time.Time
	silent int // refusals since logged
}

// refused notes that a payload was not accepted. An error whose outcome is unknown says
// nothing about the store: the next payload may be accepted.
func (in *Ingest) refused(workspace string, err error) {
	now, r := time.Now(), &in.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(err, journal.ErrUnavailable) && !errors.Is(err, journal.ErrUnclear) {
		r.last = now
	}
	if now.Sub(r.logged) < refusalsLogged {
		r.silent++
		return
	}
	in.Log.Warn("durable accept refused", "workspace", workspace, "others", r.silent, "err", err)
	r.logged, r.silent = now, 0
}

// over notes that a payload was accepted.
func (r *refusals) over() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Time{}
}

// Refusing reports whether the store has refused a payload a moment ago and has accepted
// none since. A full store may still have room for less than a message.
func (in *Ingest) Refusing() bool {
	in.refusals.mu.Lock()
	defer in.refusals.mu.Unlock()
	return time.Since(in.refusals.last) < refusingFor
}
