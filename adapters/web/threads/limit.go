package threads

import (
	"errors"
	"math"
	"net/http"
	"strconv"

	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
)

// ErrLimit means that a message was not recorded because its sender has asked for too many runs, or their tokens are used up.
var ErrLimit = errors.New("the limit of runs or of tokens is reached; ask again later")

// MayAsk returns an error if the sender of a complete body may not ask for one more run in a workspace.
// Nothing is stored then. The response has the time to wait.
func (a API) MayAsk(w http.ResponseWriter, r *http.Request, workspace string, b payload.Body) error {
	until, err := a.Ingest.Limited(r.Context(), a.envelope(workspace, b))
	if err != nil || until.IsZero() {
		return err
	}
	wait := max(1, int(math.Ceil(until.Sub(a.Now()).Seconds())))
	w.Header().Set("Retry-After", strconv.Itoa(wait))
	return exchange.Fail(http.StatusTooManyRequests, "limit", ErrLimit.Error())
}
