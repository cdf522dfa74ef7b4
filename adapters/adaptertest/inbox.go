package adaptertest

import (
	"context"
	"slices"
	"sync"

	"parley/adapters"
	"parley/ingest/event"
)

// inbox is an adapters.Inbox that stores envelopes in memory.
type inbox struct {
	mu      sync.Mutex
	taken   []event.Envelope
	changed chan struct{} // closed with the next envelope
	// before, if set, runs before an envelope is stored. Its error refuses the envelope.
	before func(ctx context.Context, envelope event.Envelope) error
}

func newInbox() *inbox { return &inbox{changed: make(chan struct{})} }

// Accept implements adapters.Inbox.
func (i *inbox) Accept(ctx context.Context, envelope event.Envelope) (adapters.Receipt, error) {
	i.mu.Lock()
	before := i.before
	i.mu.Unlock()
	if before != nil {
		if err := before(ctx, envelope); err != nil {
			return adapters.Receipt{}, err
		}
	}
	if envelope.Queued != nil {
		envelope.Queued()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.taken = append(i.taken, envelope)
	close(i.changed)
	i.changed = make(chan struct{})
	return adapters.Receipt{ID: int64(len(i.taken))}, nil
}

// first sets the function that runs before each later envelope is stored.
func (i *inbox) first(f func(ctx context.Context, envelope event.Envelope) error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.before = f
}

// all returns the stored envelopes in the order of their arrival.
func (i *inbox) all() []event.Envelope {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.taken)
}

// await waits for the first envelope that matches. It passes each envelope to wanted once, with
// its number from 0. It returns false if ctx ends first.
func (i *inbox) await(ctx context.Context, wanted func(n int, envelope event.Envelope) bool) (event.Envelope, bool) {
	for n := 0; ; {
		i.mu.Lock()
		taken, changed := i.taken, i.changed
		i.mu.Unlock()
		for ; n < len(taken); n++ {
			if wanted(n, taken[n]) {
				return taken[n], true
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return event.Envelope{}, false
		}
	}
}
