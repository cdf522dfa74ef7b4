package web

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"parley/adapters/web/payload"
	"parley/ingest/event"
)

// Limits bounds the runs that callers ask for.
type Limits interface {
	// Limited returns the time from which on the sender of an envelope may ask for a run
	// again. It is zero if the sender may now, or if the envelope was accepted before.
	Limited(ctx context.Context, envelope event.Envelope) (time.Time, error)
}

var errLimit = errors.New("the limit of runs is reached; ask again later")

// mayAsk returns an error if the caller may not ask for one more run with a complete body. Nothing
// is stored then. The response has the time to wait.
func (c Call) mayAsk(w http.ResponseWriter, r *http.Request, b payload.Body) error {
	until, err := c.Limits.Limited(r.Context(), c.envelope(b))
	if err != nil || until.IsZero() {
		return err
	}
	wait := max(1, int(math.Ceil(until.Sub(c.Now()).Seconds())))
	w.Header().Set("Retry-After", strconv.Itoa(wait))
	return fail(http.StatusTooManyRequests, "limit", errLimit.Error())
}
