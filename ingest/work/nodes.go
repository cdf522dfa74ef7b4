package work

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/threads"
)

// Nodes send each other hints. A hint may be lost: each node looks into the store
// at least once a second, and reminds the workers that it has with each renewal of a lease.

// lookAgain is the hint of a node that has released its claims.
const lookAgain = "look"

// hint returns a thread's work as words. The agent comes last, because its name may
// contain spaces.
func hint(kind Kind, agent string, thread int64) string {
	return fmt.Sprintf("%s %d %s", kind, thread, agent)
}

// notify sends a hint to a node, or to all if its name is empty.
func (s *Scheduler) notify(node, words string) {
	if s.notifier != nil && node != s.Node {
		s.notifier.Notify(node, words)
	}
}

// Tell sends a hint of a thread's work to the node that has the thread. See Queue.Heard.
func (s *Scheduler) Tell(node string, kind Kind, agent string, thread int64) {
	if node != "" {
		s.notify(node, hint(kind, agent, thread))
	}
}

func (s *Scheduler) heard(words string) {
	if s.Words != nil && s.Words(words) {
		return
	}
	kind, rest, _ := strings.Cut(words, " ")
	number, agent, _ := strings.Cut(rest, " ")
	thread, err := strconv.ParseInt(number, 10, 64)
	if err != nil { // lookAgain, or the hint of a newer version
		s.lookAll()
		return
	}
	s.Wake(Kind(kind), agent, thread)
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[queueKey{Kind(kind), agent}]; q != nil && q.Heard != nil {
		q.Heard(thread)
	}
}

// remind calls Heard of the queues whose workers have a thread, because a hint for them may
// have been lost. The caller holds the mutex.
func (s *Scheduler) remind(thread int64) {
	for _, q := range s.queues {
		if _, busy := q.busy[thread]; busy && q.Heard != nil {
			q.Heard(thread)
		}
	}
}

// missed is called if words of other nodes may have been lost.
func (s *Scheduler) missed() {
	s.lookAll()
	if s.Missed != nil {
		s.Missed()
	}
}

// lookAll makes every queue look into the store.
func (s *Scheduler) lookAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.queues {
		q.lookBy(0)
	}
}

// Adopt takes over a claim that the store made at a time.
func (s *Scheduler) Adopt(made threads.Claim, at time.Time) *Claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.adopt(made, at)
}

// Accepted adopts the claim that Accept made, if it made one, and puts payload into
// it under Payload, unless payload is nil. It wakes the thread's intake here,
// or notifies the node that has the thread.
func (s *Scheduler) Accepted(r envelopes.AcceptResult, payload any) {
	if r.Owner != "" {
		s.notify(r.Owner, hint(Intake, "", r.Thread))
		return
	}
	if r.Fence != 0 {
		c := s.Adopt(r.Claim, r.At)
		if payload != nil && c.Fence == r.Fence {
			Payload.Put(c, payload)
		}
	}
	s.Wake(Intake, "", r.Thread)
}
