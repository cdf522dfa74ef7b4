// Package faults has the faults of calls to a platform's fake: scripted ones for its next calls,
// and random ones.
package faults

import (
	"math/rand/v2"
	"sync"
)

// Script has the faults F of the next calls C of each route. The zero value has none. Its methods
// may be called concurrently.
type Script[C, F any] struct {
	mu   sync.Mutex
	next map[string][]F
}

// Add appends the faults of a route's next calls.
func (s *Script[C, F]) Add(route string, faults ...F) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = map[string][]F{}
	}
	s.next[route] = append(s.next[route], faults...)
}

// Take removes and returns the fault of a route's next call. If none is left, it returns that of
// the plan. A plan that is nil has no faults.
func (s *Script[C, F]) Take(route string, call C, plan func(C) F) (fault F) {
	s.mu.Lock()
	queue := s.next[route]
	if len(queue) > 0 {
		s.next[route] = queue[1:]
	}
	s.mu.Unlock()
	switch {
	case len(queue) > 0:
		return queue[0]
	case plan != nil:
		return plan(call)
	}
	return fault
}

// Chance is a fault of a route's calls with its probability, from 0 to 1.
type Chance[F any] struct {
	Route string
	P     float64
	Fault F
}

// Mix returns a function that draws the fault of a route's next call. The same seed gives the same
// faults in the same order of calls. A call has at most one of them.
func Mix[F any](seed uint64, chances []Chance[F]) func(route string) F {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, seed))
	return func(route string) (none F) {
		mu.Lock()
		draw := random.Float64()
		mu.Unlock()
		for _, c := range chances {
			if c.Route != route {
				continue
			}
			if draw < c.P {
				return c.Fault
			}
			draw -= c.P
		}
		return none
	}
}
