package slack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/adapters"
)

// errTooMany is Slack's word that the app has all the sockets that it may have.
var errTooMany = errors.New("too_many_websockets: the app has its ten sockets open, here or elsewhere")

// keep keeps one socket open, until ctx ends or trying is of no use. Slack says
// seconds before that a socket shall go: the next one is then open before the old
// one is given up, unless all places are ours and taken.
func (s *sockets) keep(ctx context.Context) error {
	var current *socket
	young := 0 // sockets in a row that ended so
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
			s.ending.Go(func() { old.retire(ctx) })
		}
		current = next
		select {
		case <-ctx.Done():
			return nil
		case <-current.leaving:
			s.link.Log.Debug("slack asks for another socket")
		case <-current.ended:
		}
		if len(s.places) == maxSockets && s.adapter.config.Sockets == maxSockets {
			current.close()
		}
		if young++; time.Since(current.begun) > s.times.young {
			young = 0
		}
		if err := s.follow(ctx, current, young); err != nil {
			return err
		}
	}
}

// follow waits until another socket may follow the one that has ended or shall go.
// There is no wait unless many in a row have ended young.
func (s *sockets) follow(ctx context.Context, c *socket, young int) error {
	var wait time.Duration
	if young > burst {
		wait = upTo(s.times.pace)
	}
	select {
	case <-c.ended:
		var refused *adapters.RefusedError
		if errors.As(c.err, &refused) {
			return refused
		}
		if !c.expected() {
			s.trouble("a socket of slack broke; another one is opened", c.err)
		}
		if errors.Is(c.err, errTooMany) {
			wait = s.times.crowded + upTo(s.times.crowded)
		}
	default:
	}
	pause(ctx, wait)
	return nil
}

// dial opens a socket, and tries until it has one: nil without an error is the end
// of ctx. An error is one that trying again does not mend. Where Slack says that
// there are too many sockets, the one before makes room.
func (s *sockets) dial(ctx context.Context, before *socket) (*socket, error) {
	room := 0 // tries for which Slack may not have seen yet that there is room
	for failures := 0; ; failures++ {
		s.mu.Lock()
		until := s.until
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
				wait += s.times.crowded
			}
		}
		s.trouble("no socket could be opened; it is tried again", err, "wait", wait)
		if !pause(ctx, wait) {
			return nil, nil
		}
	}
}

// backoff is how long to wait after so many failures and one more.
func (s *sockets) backoff(failures int, err error) time.Duration {
	wait := upTo(min(s.times.backMax, s.times.backMin<<min(failures, 20)))
	var limited *adapters.SendError
	if errors.As(err, &limited) && limited.Failure == adapters.RateLimited {
		s.mu.Lock()
		s.until = time.Now().Add(limited.RetryAfter)
		s.mu.Unlock()
		wait += limited.RetryAfter
	}
	return wait
}

// place takes a place. If there is none, the socket that has been retiring longest
// gives up its own.
func (s *sockets) place(ctx context.Context) bool {
	select {
	case s.places <- struct{}{}:
		return true
	default:
	}
	s.mu.Lock()
	if len(s.retiring) > 0 {
		close(s.retiring[0].hurry)
		s.retiring = s.retiring[1:]
	}
	s.mu.Unlock()
	select {
	case s.places <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// dialOnce takes a place, which there are no more of than Slack allows, and opens a
// socket in it.
func (s *sockets) dialOnce(ctx context.Context, before *socket) (*socket, error) {
	if !s.place(ctx) {
		return nil, ctx.Err()
	}
	conn, err := s.adapter.openSocket(ctx)
	if err != nil {
		<-s.places
		return nil, err
	}
	c := s.newSocket(conn, before)
	timer := time.NewTimer(s.times.hello)
	defer timer.Stop()
	select {
	case <-c.greeted:
		return c, nil
	case <-c.ended:
		return nil, c.err
	case <-timer.C:
		err = fmt.Errorf("slack said no hello within %v", s.times.hello)
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.close()
	return nil, err
}
