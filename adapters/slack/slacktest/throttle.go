package slacktest

import (
	"sync"
	"time"
)

// throttle returns the time that a call must wait because it comes too early. It returns 0 if
// the call may proceed, and counts the call.
func (s *Server) throttle(call Call) time.Duration {
	m := methods[call.Method]
	now := s.options.Now()
	tier := 0
	switch {
	case s.options.Distributed && m.reads:
		tier = 1
	case s.options.Tiers:
		tier = m.tier
	}
	if tier > 0 {
		if wait := s.tiers.take(call.Method, tier, now); wait > 0 {
			return wait
		}
	}
	if id := call.Form.Get("channel"); m.posts && s.options.PostRate > 0 && id != "" {
		return s.channel(id).take(now, time.Duration(float64(time.Second)/s.options.PostRate))
	}
	return 0
}

// unevenness is the fraction of the time between two posts by which a post may come early,
// because the network is uneven. Over many posts, the rate holds.
const unevenness = 5

// take counts a post against the channel's rate, or returns the time to wait.
func (c *channel) take(now time.Time, every time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wait := c.next.Sub(now); wait > every/unevenness {
		return wait
	}
	if now.After(c.next) {
		c.next = now
	}
	c.next = c.next.Add(every)
	return 0
}

// tiers counts the calls of the last minute.
type tiers struct {
	mu    sync.Mutex
	calls map[string][]time.Time // by method, at most its tier
}

// take counts a call of the method, which accepts n per minute, or returns the time to wait.
func (t *tiers) take(name string, n int, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == nil {
		t.calls = map[string][]time.Time{}
	}
	recent := t.calls[name]
	for len(recent) > 0 && now.Sub(recent[0]) >= time.Minute {
		recent = recent[1:]
	}
	if len(recent) < n {
		t.calls[name] = append(recent, now)
		return 0
	}
	t.calls[name] = recent
	return time.Minute - now.Sub(recent[0])
}

// wholeSeconds rounds up, as Retry-After requires.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
