package slack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/adapters"
)

// errTooMany is Slack's refusal of a socket because the app has its maximum number of
// sockets.
var errTooMany = errors.New("too_many_websockets: the app already has ten open sockets, here or elsewhere")

// keep keeps one socket open, until ctx ends or a retry is useless. Slack asks for a
// replacement seconds before it closes a socket. Then keep opens the next socket before
// it closes the old one, unless our own sockets use all of the app's ten connections.
func (s *sockets) keep(ctx context.Context) error {
	var current *socket
	young := 0 // sockets in a row that ended young
	defer func() {
		if current != nil {
			current.retire(ctx)
		}
	}()
	for {
		next, err := s.dial(ctx, current)
		if next == nil {
			return err
		}
		if old := current; old != nil {
			s.goroutines.Go(func() { old.retire(ctx) })
		}
		current = next
		select {
		case <-ctx.Done():
			return nil
		case <-current.leaving:
			s.link.Log.Debug("slack asks for a replacement socket")
		case <-current.ended:
		}
		if len(s.connSlots) == maxSockets && s.adapter.config.Sockets == maxSockets {
			current.close()
		}
		if young++; time.Since(current.begun) > s.times.young {
			young = 0
		}
		if err := s.waitForNext(ctx, current, young); err != nil {
			return err
		}
	}
}

// waitForNext waits until another socket may replace one that has ended or must be
// replaced. It waits only if many sockets in a row ended young, or if the app has too
// many sockets.
func (s *sockets) waitForNext(ctx context.Context, c *socket, young int) error {
	var wait time.Duration
	if young > burst {
		wait = jitter(s.times.youngWait)
	}
	select {
	case <-c.ended:
		var refused *adapters.RefusedError
		if errors.As(c.err, &refused) {
			return refused
		}
		if !c.expected() {
			s.warnError("slack socket broke; opening another", c.err)
		}
		if errors.Is(c.err, errTooMany) {
			wait = s.times.tooManyWait + jitter(s.times.tooManyWait)
		}
	default:
	}
	pause(ctx, wait)
	return nil
}

// dial opens a socket and retries until it has one. It returns nil without an error if
// ctx has ended. It returns an error if a retry can't help. If Slack reports too many
// sockets, dial closes the socket before, to make room.
func (s *sockets) dial(ctx context.Context, before *socket) (*socket, error) {
	room := 0 // tries during which Slack may not have noticed the closed socket yet
	for failures := 0; ; failures++ {
		s.mu.Lock()
		until := s.dialAfter
		s.mu.Unlock()
		if !pause(ctx, time.Until(until)) {
			return nil, nil
		}
		c, err := s.dialOnce(ctx, before)
		var refused *adapters.RefusedError
		switch {
		case err == nil:
			return c, nil
		case ctx.Err() != nil:
			return nil, nil
		case errors.As(err, &refused):
			return nil, err
		case errors.Is(err, errTooMany) && before != nil:
			before.close()
			before, room = nil, 5
		}
		wait := s.backoff(failures, err)
		if errors.Is(err, errTooMany) {
			if room--; room < 0 {
				wait += s.times.tooManyWait
			}
		}
		s.warnError("opening a slack socket failed; retrying", err, "wait", wait)
		if !pause(ctx, wait) {
			return nil, nil
		}
	}
}

// backoff returns the wait after the given number of earlier failures and one more.
// After a rate limit, it also delays the requests of all keepers.
func (s *sockets) backoff(failures int, err error) time.Duration {
	wait := jitter(min(s.times.backoffMax, s.times.backoffMin<<min(failures, 20)))
	var limited *adapters.SendError
	if errors.As(err, &limited) && limited.Failure == adapters.RateLimited {
		s.mu.Lock()
		s.dialAfter = time.Now().Add(limited.RetryAfter)
		s.mu.Unlock()
		wait += limited.RetryAfter
	}
	return wait
}

// takeConnSlot takes a connection slot. If none is free, the socket that has been
// retiring longest must close and free its slot. takeConnSlot returns false if ctx ends
// first.
func (s *sockets) takeConnSlot(ctx context.Context) bool {
	select {
	case s.connSlots <- struct{}{}:
		return true
	default:
	}
	s.mu.Lock()
	if len(s.retiring) > 0 {
		close(s.retiring[0].evict)
		s.retiring = s.retiring[1:]
	}
	s.mu.Unlock()
	select {
	case s.connSlots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// dialOnce takes a connection slot and opens a socket. There is one slot for each
// connection that Slack allows.
func (s *sockets) dialOnce(ctx context.Context, before *socket) (*socket, error) {
	if !s.takeConnSlot(ctx) {
		return nil, ctx.Err()
	}
	conn, err := s.adapter.openSocket(ctx)
	if err != nil {
		<-s.connSlots
		return nil, err
	}
	c := s.newSocket(conn, before)
	timer := time.NewTimer(s.times.hello)
	defer timer.Stop()
	select {
	case <-c.ready:
		return c, nil
	case <-c.ended:
		return nil, c.err
	case <-timer.C:
		err = fmt.Errorf("slack sent no hello within %v", s.times.hello)
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.close()
	return nil, err
}
