package adapters

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// SendFailure is the effect of a failed call.
type SendFailure int

// The possible effects of a failed call.
const (
	// NotSent means that the platform did not take the post. Sending again is safe.
	NotSent SendFailure = iota
	// RateLimited means that the platform did not take the post, and takes no such call
	// in the Scope before RetryAfter.
	RateLimited
	// Unclear means that the call may have taken effect. The caller looks for the post
	// before it sends again.
	Unclear
	// Permanent means that the platform did not take the post and never will.
	Permanent
)

// Scope is the extent of a rate limit.
type Scope int

// The scopes of rate limits. The posts of a channel or of a workspace wait until the limit
// has ended. The adapter itself refuses further calls of a method until then.
const (
	ScopeChannel   Scope = iota // the calls about the channel of the Address
	ScopeMethod                 // the calls of one method
	ScopeWorkspace              // every call
)

// SendError is the error of a Sender's calls.
type SendError struct {
	Failure    SendFailure
	RetryAfter time.Duration // only of RateLimited
	Scope      Scope         // only of RateLimited
	TooLong    bool          // only of Permanent: the platform takes no text of this length
	Err        error
}

// Error returns the text of the cause.
func (e *SendError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// RetryAfter returns the wait that a rate limit demands, and false for another error.
func RetryAfter(err error) (wait time.Duration, limited bool) {
	failure, ok := errors.AsType[*SendError](err)
	if !ok || failure.Failure != RateLimited {
		return 0, false
	}
	return failure.RetryAfter, true
}

// Permanently returns a permanent failure without a call.
func Permanently(message string) *SendError {
	return &SendError{Failure: Permanent, Err: errors.New(message)}
}

// WithoutEffect returns the failure of a call that has no visible effect by itself, and that may
// be repeated therefore: an unclear one is NotSent. It returns any other error unchanged.
func WithoutEffect(err error) error {
	if failure, ok := errors.AsType[*SendError](err); ok && failure.Failure == Unclear {
		return &SendError{Failure: NotSent, Err: err}
	}
	return err
}

// RefusedError means that the platform refuses our credentials or our presence. Another
// try without a change of configuration is useless.
type RefusedError struct {
	Err  error
	Hint string // the operator's remedy
}

// Error returns the cause and the hint.
func (e *RefusedError) Error() string { return fmt.Sprintf("%v (%s)", e.Err, e.Hint) }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// ErrPanic is wrapped by the error of a panic.
var ErrPanic = errors.New("panic")

// Recover is deferred around the calls of an adapter or an agent. It turns a panic into the
// error of the call, and logs it with args.
func Recover(log *slog.Logger, err *error, args ...any) {
	if p := recover(); p != nil {
		log.Error("a call panicked", append(args, "panic", p, "stack", string(debug.Stack()))...)
		*err = fmt.Errorf("%w: %v", ErrPanic, p)
	}
}
