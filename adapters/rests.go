package adapters

import (
	"fmt"
	"sync"
	"time"
)

// Rests are the methods of a platform that rest after a rate limit of ScopeMethod. The zero
// value is ready. It is safe for concurrent use.
type Rests struct{ until sync.Map } // of time.Time, by method

// Rest lets a method rest for a time from now.
func (r *Rests) Rest(method string, wait time.Duration) {
	r.until.Store(method, time.Now().Add(wait))
}

// Refusal returns the error of a call of a method that rests: a *SendError with the rest of
// the wait. It returns nil if the call may be made.
func (r *Rests) Refusal(method string) error {
	until, _ := r.until.Load(method)
	end, _ := until.(time.Time)
	wait := time.Until(end)
	if wait <= 0 {
		return nil
	}
	return &SendError{Failure: RateLimited, Scope: ScopeMethod, RetryAfter: wait, Err: fmt.Errorf("%s is rate limited and was not called", method)}
}
