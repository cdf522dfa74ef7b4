package work

import (
	"cmp"
	"context"
	"sync"
	"time"

	"parley/ingest/journal/threads"
)

// Claim is this node's claim of a thread. The thread's workers share it and its
// payloads. A claim with another fence begins without payloads.
type Claim struct {
	threads.Claim
	serial bool
	*held
}

// held is the part of a claim that its workers share.
type held struct {
	payloads sync.Map

	// The scheduler's mutex guards these.
	users int
	until time.Time // the end of the lease; without leases, when the claim is forgotten
}

// Serial reports whether the work runs in the serial queue.
func (c *Claim) Serial() bool { return c.serial }

// Holds reports whether a claim surely stands: its lease has not ended by this node's clock, which
// also counts the time for which the process or the machine stood still. The claim may stand
// although Holds returns false; then the store knows.
func (s *Scheduler) Holds(c *Claim) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Lease == 0 || s.Now().Before(c.until)
}

// lapsed reports that nobody uses the claim and that its lease has ended: another
// node may have claimed the thread.
func (c *Claim) lapsed(now time.Time) bool { return c.users == 0 && !now.Before(c.until) }

const (
	// sweepEvery is the interval between two sweeps of the claims.
	sweepEvery = time.Second
	// renewWithin bounds one renewal of leases, so that a further one succeeds before they end.
	renewWithin = 2 * time.Second
	// keepUnused is how long an unused claim is kept if claims have no lease, and
	// keepQueued how long one is kept whose thread waits for a worker.
	keepUnused, keepQueued = 2 * time.Second, time.Minute
)

// adopt takes over a claim that the store made at a time. The caller holds the mutex.
func (s *Scheduler) adopt(made threads.Claim, at time.Time) *Claim {
	c := s.claims[made.Thread]
	if c == nil || c.Fence < made.Fence {
		c = &Claim{Claim: made, held: &held{}}
		s.claims[made.Thread] = c
	}
	s.extend(c, at)
	return c
}

// extend makes a claim last a lease from a time. The caller holds the mutex.
func (s *Scheduler) extend(c *Claim, from time.Time) {
	if until := from.Add(cmp.Or(s.Lease, keepQueued)); until.After(c.until) {
		c.until = until
	}
}

// take returns the claim of a thread with one more user. It claims the thread if this
// node does not have it. It returns nil if another node has the thread, and notifies that
// node of the work.
func (s *Scheduler) take(ctx context.Context, q *queue, thread int64) (*Claim, error) {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.claims[thread]
	if c == nil || c.lapsed(now.Add(min(s.Lease, 2*sweepEvery))) { // or will lapse before a sweep renews it
		s.mu.Unlock()
		made, owner, err := s.claim(ctx, thread, now)
		s.mu.Lock()
		if owner != "" && made.Fence == 0 {
			s.notify(owner, hint(q.Kind, q.Agent, thread))
		}
		if err != nil || made.Fence == 0 {
			return nil, err
		}
		c = s.adopt(made, now)
	}
	c.users++
	return c, nil
}

// leave removes a user from a claim. A lost claim is forgotten. The claim of a thread whose
// work waits is forgotten if no user is left; then the caller must release it, unless it was
// extended at the returned time or later.
func (s *Scheduler) leave(c *Claim, lost, waits bool) (now time.Time, release bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = s.Now()
	c.users--
	if s.Lease == 0 {
		c.until = now.Add(keepUnused)
	}
	release = waits && c.users == 0
	if (lost || release) && s.claims[c.Thread] == c {
		delete(s.claims, c.Thread)
	}
	return now, release
}

// Keep keeps a claim until leave is called, as a worker does that has it. Only a worker of the claim may call it.
func (s *Scheduler) Keep(c *Claim) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.users++
	return func() { s.leave(c, false, false) }
}

// sweep renews the leases in use, well before they end, reminds their workers, and forgets
// unused claims. A forgotten claim ends with its lease, or with the process.
func (s *Scheduler) sweep(ctx context.Context) {
	now := s.Now()
	var ending []*Claim
	s.mu.Lock()
	for thread, c := range s.claims {
		switch {
		case c.lapsed(now):
			delete(s.claims, thread)
		case s.Lease > 0 && c.users > 0 && c.until.Before(now.Add(s.Lease*2/3)):
			ending = append(ending, c)
		}
	}
	s.mu.Unlock()
	within, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	renewed, err := s.renew(within, ending, now.Add(s.Lease))
	if err != nil && ctx.Err() == nil {
		s.Warn("store unavailable; leases are not renewed", "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range renewed {
		s.extend(c, now)
		s.remind(c.Thread)
	}
}
