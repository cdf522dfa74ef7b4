package adaptertest

import (
	"context"
	"sync"

	"parley/adapters"
)

// State is an adapters.State in memory. It is safe for concurrent use.
type State struct {
	mu     sync.Mutex
	values map[string]string
}

var _ adapters.State = (*State)(nil)

// NewState returns an empty State.
func NewState() *State { return &State{values: map[string]string{}} }

// Get implements adapters.State.
func (s *State) Get(_ context.Context, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[name], nil
}

// Put implements adapters.State.
func (s *State) Put(ctx context.Context, name, value string) error {
	return s.Update(ctx, name, func(string) string { return value })
}

// Update implements adapters.State.
func (s *State) Update(_ context.Context, name string, change func(value string) string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[name] = change(s.values[name])
	return nil
}
