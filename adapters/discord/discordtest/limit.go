package discordtest

import (
	"fmt"
	"net/http"
	"time"
)

// tooFast is the answer of a call that the rate limit refuses.
type tooFast struct{ after time.Duration }

// bucket counts the calls of one route and channel in the present period.
type bucket struct {
	until time.Time
	calls int
}

// limit counts a call, and writes the headers of its bucket. It returns the wait if the
// bucket is empty. The caller holds the lock.
// https://docs.discord.com/developers/topics/rate-limits#header-format
func (s *Server) limit(header http.Header, name string) (wait time.Duration) {
	limit, per, now := s.options.PostLimit, s.options.PostPer, s.options.Now()
	if limit == 0 {
		return 0
	}
	b := s.buckets[name]
	if b == nil {
		b = new(bucket)
		s.buckets[name] = b
	}
	if !now.Before(b.until) {
		b.until, b.calls = now.Add(per), 0
	}
	b.calls++
	after := b.until.Sub(now)
	header.Set("X-RateLimit-Limit", fmt.Sprint(limit))
	header.Set("X-RateLimit-Remaining", fmt.Sprint(max(limit-b.calls, 0)))
	header.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.3f", after.Seconds()))
	header.Set("X-RateLimit-Bucket", fmt.Sprintf("%x", len(name)))
	if b.calls > limit {
		return after
	}
	return 0
}
