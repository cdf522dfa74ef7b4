package web

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"

	"parley/ingest/event"
)

// Limits bounds the runs that callers ask for.
type Limits interface {
	// Limited returns the time from which on the sender of an envelope may ask for a run
	// again. It is zero if the sender may now, or if the envelope was accepted before.
	Limited(ctx context.Context, envelope event.Envelope) (time.Time, error)
}

// mayAsk reports whether the caller may ask for one more run with a complete body. If not, it
// responds with the time to wait, and nothing is stored.
func (c Call) mayAsk(w http.ResponseWriter, r *http.Request, b Body) bool {
	until, err := c.Limits.Limited(r.Context(), c.envelope(b))
	switch {
	case err != nil:
		c.failWith(w, err)
	case !until.IsZero():
		wait := max(1, int(math.Ceil(until.Sub(c.Now()).Seconds())))
		w.Header().Set("Retry-After", strconv.Itoa(wait))
		c.fail(w, http.StatusTooManyRequests, "limit", "the limit of runs is reached; ask again later", nil)
	default:
		return true
	}
	return false
}
