package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/adapters"
	"parley/ingest/wake"
)

// errTooMany is Slack's refusal of a socket because the app has its maximum number of
// sockets.
var errTooMany = errors.New("too_many_websockets: the app already has ten open sockets, here or elsewhere")

// keep keeps one socket open, until ctx ends or a retry is useless.
func (s *sockets) keep(ctx context.Context) (err error) {
	defer adapters.Recover(s.link.Log, &err)
	current, err := s.dial(ctx, nil)
	defer func() {
		if current != nil {
			current.close()
		}
	}()
	for current != nil {
		var again <-chan time.Time
		if current.others > 0 && s.link.Others != nil {
			again = time.After(s.times.CountAgain)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-current.ended:
			current, err = s.next(ctx, current)
		case <-current.leaving:
			current, err = s.replace(ctx, current)
		case <-again:
			current, err = s.replace(ctx, current)
		}
	}
	return err
}

// replace opens the next socket beside a socket that Slack asks us to replace, seconds
// before Slack closes it, or whose hello counted connections of other programs. Only then replace retires the old socket. Both together must
// fit below Slack's limit. If Slack asks for too many replacements at once, replace
// waits for a spare connection, at most until the old socket has ended.
func (s *sockets) replace(ctx context.Context, old *socket) (*socket, error) {
	s.link.Log.Debug("a socket is replaced")
	select {
	case s.spares <- struct{}{}:
		defer s.goroutines.Go(func() {
			old.retire(ctx)
			<-s.spares
		})
	case <-old.ended:
	case <-ctx.Done():
		defer old.close()
	}
	return s.next(ctx, old)
}

// next opens the socket that follows old, as soon as old has its minimum age. If old ended soon
// after its begin, the next one may end in the same way, so next waits as after a failure. It
// returns what dial returns.
func (s *sockets) next(ctx context.Context, old *socket) (*socket, error) {
	wait, brief := time.Until(old.begun)+wake.Jitter(s.times.MinAge), 0
	select {
	case <-old.ended:
		if refused, ok := errors.AsType[*adapters.RefusedError](old.err); ok {
			return nil, refused
		}
		if !old.leaveAsked {
			s.warn("slack socket broke; opening another", old.err)
		}
		if time.Since(old.begun) < s.times.BackoffMin {
			wait, brief = s.backoff(old.brief, old.err), old.brief+1
		}
		if errors.Is(old.err, errTooMany) {
			wait = wake.Jitter(s.times.BackoffMax)
		}
	default:
	}
	if !wake.After(ctx, wait) {
		return nil, nil
	}
	c, err := s.dial(ctx, old)
	if c != nil {
		c.brief = brief
	}
	return c, err
}

// dial opens a socket that follows the socket before, and retries until it has one. It
// returns nil without an error if ctx has ended. It returns an error if a retry can't
// help.
func (s *sockets) dial(ctx context.Context, before *socket) (*socket, error) {
	for failures := 0; ; failures++ {
		c, err := s.dialOnce(ctx, before)
		var refused *adapters.RefusedError
		switch {
		case err == nil:
			return c, nil
		case ctx.Err() != nil:
			return nil, nil
		case errors.As(err, &refused):
			return nil, err
		}
		wait := s.backoff(failures, err)
		s.warn("opening a slack socket failed; retrying", err, "wait", wait)
		if !wake.After(ctx, wait) {
			return nil, nil
		}
	}
}

// backoff returns the wait after the given number of earlier failures and one more. After a
// rate limit, the requests of all keepers fail until the method may be called again.
func (s *sockets) backoff(failures int, err error) time.Duration {
	wait := wake.Jitter(wake.Backoff(s.times.BackoffMin, s.times.BackoffMax, failures))
	after, _ := adapters.RetryAfter(err)
	return wait + after
}

// dialOnce opens a socket and waits for Slack's hello.
func (s *sockets) dialOnce(ctx context.Context, before *socket) (*socket, error) {
	conn, err := s.receiver.openSocket(ctx)
	if err != nil {
		return nil, err
	}
	c := s.newSocket(conn, before)
	select {
	case <-c.ready:
		return c, nil
	case <-c.ended:
		return nil, c.err
	case <-time.After(s.times.Hello):
		err = fmt.Errorf("slack sent no hello within %v", s.times.Hello)
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.close()
	return nil, err
}
