package sqlite

import "parley/ingest/journal/internal/queue"

// request is a call of Write with what it did in the transaction under way.
type request struct {
	*queue.Call
	err error // what its function returned
}

// verdict is what a function means for the transaction it ran in.
type verdict int

const (
	fits   verdict = iota // it succeeded, or failed before it wrote anything
	spoils                // it failed by itself after it had written
	loses                 // SQLite failed: the transaction may be gone
)

// run calls the function in the transaction of t; r.err is then its result.
func (r *request) run(t *tx) verdict {
	r.err = r.Run(t)
	switch {
	case t.dead != nil:
		r.err = t.dead
		return loses
	case r.err != nil && t.wrote:
		return spoils
	}
	t.dead = errDone // a function may keep t, but not use it
	return fits
}
