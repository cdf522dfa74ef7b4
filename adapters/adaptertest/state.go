package adaptertest

import (
	"context"
	"fmt"
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

// Update implements adapters.State. It fails if the value is larger than the journal's bound.
func (s *State) Update(_ context.Context, name string, change func(value string) string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	value := change(s.values[name])
	if len(value) > adapters.MaxState {
		return fmt.Errorf("the value of %q has %d bytes", name, len(value))
	}
	s.values[name] = value
	return nil
}
