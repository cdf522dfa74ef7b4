package ingest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley/ingest/journal/storage"
)

// refusingFor is how long the store counts as refusing after its last refusal. The platform
// may send no further payload until the refusals are over.
const refusingFor = 5 * time.Second

// refusals are the store's refusals of payloads since the last accept.
type refusals struct {
	any         atomic.Bool // since is not zero; for a look without the lock
	mu          sync.Mutex
	since, last time.Time // zero for none
	n           int
	err         error
}

// refused notes that a payload was not accepted. An error whose outcome is unknown says
// nothing about the store: the next payload may be accepted.
func (in *Ingest) refused(workspace string, err error) {
	if errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, storage.ErrUnclear) {
		in.StoreFails(err, true)
	}
	in.Work.Warn("durable accept refused", "workspace", workspace, "err", err)
}

// StoreFails notes that the store takes no messages: it has refused a payload, or failed a probe. The first
// of such errors is logged.
func (in *Ingest) StoreFails(err error, payload bool) {
	r, now := &in.refusals, time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() {
		r.since = now
		r.any.Store(true)
		in.Log.Error("store takes no messages", "err", err)
	}
	r.err = err
	if payload {
		r.last, r.n = now, r.n+1
	}
}

// StoreWorks notes that the store has taken a payload, or passed a probe after it had failed one. If it took
// no messages before, that is logged.
func (in *Ingest) StoreWorks() {
	r := &in.refusals
	if !r.any.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() {
		return
	}
	in.Log.Info("store takes messages again", "after", time.Since(r.since).Round(time.Millisecond), "refused", r.n)
	r.since, r.last, r.n, r.err = time.Time{}, time.Time{}, 0, nil
	r.any.Store(false)
}

// Refusing returns an error if the store has refused a payload a moment ago and has accepted
// none since. A full store may still have room for less than a message.
func (in *Ingest) Refusing() error {
	r := &in.refusals
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.IsZero() || time.Since(r.last) >= refusingFor {
		return nil
	}
	return fmt.Errorf("the store refused a message a moment ago: %w", r.err)
}
