package journal

import (
	"context"
	"time"
)

// hold is a thread that this node has claimed.
type hold struct {
	lease   Lease
	users   int
	claimed chan struct{} // closed once the claim is decided
	refused bool          // it can't be had; read once claimed is closed
	idle    bool          // seen without users by the last sweep
}

// sweepEvery is the time between two looks at what is held.
const sweepEvery = time.Second

// decided is a hold of a lease that is there already.
func decided(lease Lease) *hold {
	claimed := make(chan struct{})
	close(claimed)
	return &hold{lease: lease, claimed: claimed}
}

// expired says that nobody works on the thread and that its lease has come to its
// end: somebody else may have it by now.
func (h *hold) expired(now time.Time) bool {
	return h.users == 0 && !h.lease.Until.IsZero() && !now.Before(h.lease.Until)
}

// adopt holds a thread that was claimed, if nobody works on it under an older
// claim; who does finds out by its fence.
func (d *Desk) adopt(lease Lease) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.held[lease.Thread]; h == nil || h.users == 0 {
		d.held[lease.Thread] = decided(lease)
	}
}

// take adds a user to a thread's hold, claiming the thread first where this
// node does not have it. It returns nil where it can't be had.
func (d *Desk) take(ctx context.Context, l *lane, thread int64) *hold {
	d.mu.Lock()
	h := d.held[thread]
	if h != nil && !h.expired(d.journal.now()) {
		h.users++
		h.idle = false
		d.mu.Unlock()
		<-h.claimed
	} else {
		h = &hold{users: 1, claimed: make(chan struct{})}
		d.held[thread] = h
		d.mu.Unlock()
		d.claim(ctx, l, thread, h)
	}
	if h.refused {
		d.leave(h)
		return nil
	}
	return h
}

// claim decides a hold. Who has the thread, if it is another node, is told that
// there is work.
func (d *Desk) claim(ctx context.Context, l *lane, thread int64, h *hold) {
	defer close(h.claimed)
	lease, owner, err := d.journal.claim(ctx, thread, l.Work)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("claim a thread", "work", l.Work, "err", err)
	}
	if lease == nil {
		h.refused = true
		d.drop(thread, h)
		d.ring(owner, l.Work, l.Agent, thread)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	h.lease = *lease
}

// leave takes a user off a hold.
func (d *Desk) leave(h *hold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h.users--
}

// Lost drops the hold of a thread that somebody else has claimed. Whoever else
// works under the same lease finds out by its fence.
func (d *Desk) Lost(lease *Lease) {
	d.mu.Lock()
	h := d.held[lease.Thread]
	d.mu.Unlock()
	if h != nil && h.lease.Fence == lease.Fence {
		d.drop(lease.Thread, h)
	}
}

// drop forgets a hold, if it is still the thread's.
func (d *Desk) drop(thread int64, h *hold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held[thread] == h {
		delete(d.held, thread)
	}
}

// Run renews what is worked on and lets go what is not, and hears of work from
// other nodes, until ctx ends.
func (d *Desk) Run(ctx context.Context) error {
	listening := make(chan error, 1)
	go func() { listening <- d.listen(ctx) }()
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return <-listening
		case <-ticker.C:
			d.sweep(ctx)
		}
	}
}

// sweep renews the leases of threads that are worked on, well before they end,
// and forgets the holds that had no user now and at the last sweep: their leases
// end by themselves, or are given back with the rest when the node stops.
func (d *Desk) sweep(ctx context.Context) {
	now := d.journal.now()
	soon := now.Add(d.journal.lease * 2 / 3)
	var ending []Lease
	d.mu.Lock()
	for thread, h := range d.held {
		switch {
		case h.users > 0:
			if !h.lease.Until.IsZero() && h.lease.Until.Before(soon) {
				ending = append(ending, h.lease)
			}
		case d.journal.lease > 0 && !h.expired(now): // it may be given back, and used until then
		case !h.idle:
			h.idle = true
		default:
			delete(d.held, thread)
		}
	}
	d.mu.Unlock()
	if len(ending) > 0 {
		d.renew(ctx, ending)
	}
}

// renew makes leases last. What is lost is not worked on any further than the
// next write, which its fence refuses.
func (d *Desk) renew(ctx context.Context, ending []Lease) {
	renewed, lost, err := d.journal.Renew(ctx, ending)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("renew the leases of threads", "threads", len(ending), "err", err)
	}
	for _, lease := range lost {
		d.Lost(&lease)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, lease := range renewed {
		if h := d.held[lease.Thread]; h != nil && h.lease.Fence == lease.Fence {
			h.lease.Until = lease.Until
		}
	}
}

// Close gives back every thread, so that other nodes need not wait for the leases
// to end. Nothing may be worked on any more.
func (d *Desk) Close(ctx context.Context) error {
	if d.journal.lease == 0 {
		return nil
	}
	d.mu.Lock()
	var held []Lease
	for _, h := range d.held {
		if h.lease.Fence != 0 {
			held = append(held, h.lease)
		}
	}
	clear(d.held)
	d.mu.Unlock()
	err := d.journal.Release(ctx, held)
	d.ringAll()
	return err
}
