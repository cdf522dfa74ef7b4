package httpcall

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"parley/adapters"
)

// maxRetryAfter bounds the wait that a program asks for.
const maxRetryAfter = time.Hour

// Refusal is the cause of an error of RefusalOf.
type Refusal struct{ Status int }

// Error names the status.
func (r *Refusal) Error() string {
	if r.Status/100 == 3 {
		return fmt.Sprintf("the program answers with status %d: set deliver.url to the final address", r.Status)
	}
	return fmt.Sprintf("the program answers with status %d", r.Status)
}

// RefusalOf returns the error of the answer of a program that takes requests of ours; nil if it has taken the request. The program
// may answer 5xx, 408 and 425 after the effect. The errors are *adapters.SendError.
func RefusalOf(answer *http.Response) error {
	status := answer.StatusCode
	err := &Refusal{status}
	switch {
	case status/100 == 2:
		return nil
	case status == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // another form asks for no certain time
		return &adapters.SendError{Failure: adapters.RateLimited, RetryAfter: min(time.Duration(max(seconds, 0))*time.Second, maxRetryAfter), Err: err}
	case status/100 == 5, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return &adapters.SendError{Failure: adapters.Unclear, Err: err}
	}
	return &adapters.SendError{Failure: adapters.Permanent, Err: err}
}
