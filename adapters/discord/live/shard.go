package live

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/ingest/event"
	"parley/ingest/wake"
)

// shard keeps one session of the gateway. Its fields belong to the goroutine of run.
type shard struct {
	*Receiver
	id, count int
	link      adapters.Link
	accepts   *accepts

	session  session
	lost     time.Time // when the last connection ended
	cause    error     // the last failure; nil before the first connection
	failures int       // the failed connections since the last success
	reports  reports
}

// reports passes the state of a shard on, one call at a time.
type reports struct {
	mu sync.Mutex
	up bool // Up was called after the last Down
}

// begins reports that events can arrive. If the session continues, it reports so only after a
// Down, because nothing was missed.
func (s *shard) begins(self event.Self, continues bool) {
	s.reports.mu.Lock()
	defer s.reports.mu.Unlock()
	if !continues || !s.reports.up {
		s.reports.up = true
		s.link.Up(self)
	}
}

// down reports that no events arrive.
func (s *shard) down() {
	s.reports.mu.Lock()
	defer s.reports.mu.Unlock()
	if s.reports.up {
		s.reports.up = false
		s.link.Down(fmt.Errorf("the gateway has no connection: %w", s.cause))
	}
}

// session is a session that can be resumed.
type session struct {
	id      string // empty for none
	address string // for a resume
}

// run keeps a session until ctx ends or a retry is useless. It reconnects by itself.
func (s *shard) run(ctx context.Context) error {
	ended := make(chan struct{})
	running, stop := context.WithCancel(ctx)
	go func() {
		defer close(ended)
		s.accepts.run(running)
	}()
	defer func() {
		stop()
		<-ended
		s.memory.Coverage.Broke(s.client.Now())
	}()
	for {
		begun := time.Now()
		connected, err := s.connect(ctx)
		var refused *adapters.RefusedError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused):
			return err
		case !connected && s.cause == nil:
			return err // the supervisor waits; another node may do better
		}
		if connected {
			s.lost = time.Now()
		}
		s.cause = err
		s.link.Log.Debug("the gateway connection ended", "shard", s.id, "err", err, "session", s.session.id != "")
		if !s.pause(ctx, s.backoff(connected, time.Since(begun), err)) || !s.accepts.drained(ctx) {
			return nil
		}
	}
}

// backoff returns the wait after a connection that lasted for a time. A connection that ends at
// once is a failure even if its session was resumed, because the next one may end in the same way.
func (s *shard) backoff(connected bool, lasted time.Duration, err error) time.Duration {
	if connected && lasted >= s.Limits.BackoffMin {
		s.failures = 0
		return 0
	}
	limit, _ := adapters.RetryAfter(err)
	wait := wake.Jitter(wake.Backoff(s.Limits.BackoffMin, s.Limits.BackoffMax, s.failures)) + limit
	s.failures++
	return wait
}

// pause waits. It reports that the shard is down once it had no connection for a while.
func (s *shard) pause(ctx context.Context, wait time.Duration) bool {
	if time.Since(s.lost)+wait >= s.Limits.DownAfter {
		s.down()
	}
	return wake.After(ctx, wait)
}

// connect makes one connection and serves it until it ends. It returns whether a session was
// started or resumed, and why the connection ended.
func (s *shard) connect(ctx context.Context) (connected bool, err error) {
	address := s.session.address
	if s.session.id == "" {
		if address, err = s.permitted(ctx); err != nil {
			return false, err
		}
	}
	c, err := s.open(ctx, address)
	if err != nil {
		s.session.address = "" // the address for resumes may be gone; the session is not
		return false, err
	}
	return c.serve(ctx)
}

// permitted waits until the shard may identify, and returns the gateway's address.
// https://docs.discord.com/developers/events/gateway#session-start-limit-object
func (s *shard) permitted(ctx context.Context) (string, error) {
	answer, err := s.askGateway(ctx)
	if err != nil {
		return "", err
	}
	limit := answer.SessionStartLimit
	if limit.Total > 0 && limit.Remaining == 0 {
		after := time.Duration(limit.ResetAfter) * time.Millisecond
		return "", call.Limited(call.BoundedWait(after), adapters.ScopeWorkspace, "the bot has no session starts left today")
	}
	key := "identify " + strconv.Itoa(s.id%max(limit.MaxConcurrency, 1))
	if !wake.After(ctx, s.client.Paces.Reserve(key, s.Limits.IdentifyEvery, time.Now())) {
		return "", ctx.Err()
	}
	return answer.URL, nil
}
