package work

import (
	"context"

	"parley/ingest/journal/threads"
)

// ClaimNow claims a thread in the store, without a worker.
func (s *Scheduler) ClaimNow(ctx context.Context, thread int64) (c threads.Claim, owner string, err error) {
	return s.claim(ctx, thread, s.Now())
}

// Sweep runs one sweep, as Run does each second.
func (s *Scheduler) Sweep(ctx context.Context) { s.sweep(ctx) }

// Claims returns the number of claims in memory.
func (s *Scheduler) Claims() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.claims)
}

// Waiting returns the number of threads that wait in memory for a worker.
func (s *Scheduler) Waiting(kind Kind, agent string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queues[queueKey{kind, agent}].waiting)
}

// QueueLimit bounds Waiting.
const QueueLimit = queueLimit

// Due returns the threads that a look of a queue finds, due by now.
func (s *Scheduler) Due(ctx context.Context, kind Kind) (threads []int64, err error) {
	now := s.Now()
	list, err := s.due(ctx, &queue{Queue: Queue{Kind: kind}}, now, 100)
	for _, d := range list {
		if d.at <= now.UnixMilli() {
			threads = append(threads, d.thread)
		}
	}
	return threads, err
}
