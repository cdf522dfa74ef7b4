package adapters

import (
	"context"
	"errors"
	"sync"
	"time"
)

// restAfter is the number of calls in a row without an answer after which a Rest begins. It lasts for restTime.
const (
	restAfter = 5
	restTime  = 5 * time.Second
)

// Rest is when a workspace's platform hangs: calls that others can do without are left out, because each would hold
// a worker that other workspaces need too. The zero value is ready for use, also concurrently.
type Rest struct {
	mu     sync.Mutex
	silent int       // calls in a row without an answer
	until  time.Time // no call before this
}

// Now reports whether the caller must leave its call out. After restTime, one call shows whether the platform answers
// again.
func (r *Rest) Now() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(r.until) {
		return true
	}
	if r.silent >= restAfter {
		r.until = now.Add(restTime)
	}
	return false
}

// Note notes the error of a call, or nil. A call has no answer if its time has ended. If the time of ctx, its
// caller's, has ended too, that tells nothing.
func (r *Rest) Note(ctx context.Context, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil:
	case !errors.Is(err, context.DeadlineExceeded):
		r.silent, r.until = 0, time.Time{}
	default:
		if r.silent++; r.silent >= restAfter {
			r.until = time.Now().Add(restTime)
		}
	}
}
