package adapters

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Exclusive is a Runner whose connection a workspace should have only once, however
// many nodes share the store: a gateway session, or a polling cursor. One node
// runs it and the others stand by. A Runner without this interface runs on every node.
type Exclusive interface {
	// Exclusive reports whether the adapter, as it is configured, may run on one node
	// only. If so, Run must close its connection before it returns, and must return
	// within a second of its ctx's end: soon after that, another node may connect. If
	// Run returns for another reason, another node may run next, so Run should
	// handle by itself what a platform does every day, such as asking for a new
	// connection.
	Exclusive() bool
}

// LeaseStore stores exclusive leases for all nodes that share it. The journal is one.
type LeaseStore interface {
	// AcquireLease takes the named lease, or renews it, until a duration from now; false
	// while another node has it.
	AcquireLease(ctx context.Context, name string, duration time.Duration) (bool, error)
	// ReleaseLease gives up the lease if this node has it.
	ReleaseLease(ctx context.Context, name string) error
}

const (
	// leaseDuration is how long a dead node keeps an exclusive lease. Another node has it
	// at most a second later.
	leaseDuration = 8 * time.Second
	// leaseUsable is how long a lease is used after the start of the call that took or
	// renewed it. The rest of its duration lets the work end, and covers clocks that differ.
	leaseUsable = 6 * time.Second
	// renewEvery is the time between two renewals, and bounds each call to the store.
	renewEvery = 2 * time.Second
	// leaseRetry is the time between two tries while another node has the lease, and
	// after a renewal has failed.
	leaseRetry = time.Second
)

// ExclusiveLease is one node's right to something that only one node may run.
type ExclusiveLease struct {
	Store LeaseStore
	Name  string // of the lease in the store
	// Waiting is called with true if this node has to wait for the lease, and with
	// false when the wait is over; nil for nobody.
	Waiting func(bool)
	Log     *slog.Logger
}

// errLeaseLost ends the work of a node that has lost its lease.
var errLeaseLost = errors.New("exclusive lease lost")

// While waits for the lease, runs f, and releases the lease after f has returned.
// f's ctx ends with ctx, or if the lease cannot be renewed, well before another
// node may have it; While then waits for the lease and runs f again. It returns
// f's error, or nil if ctx ends first.
func (l *ExclusiveLease) While(ctx context.Context, f func(ctx context.Context) error) error {
	waiting := false
	waits := func(now bool) {
		if waiting != now && l.Waiting != nil {
			l.Waiting(now)
		}
		waiting = now
	}
	for ctx.Err() == nil {
		asked := time.Now()
		if acquired, _ := l.acquire(ctx); !acquired {
			waits(true)
			select {
			case <-ctx.Done():
			case <-time.After(leaseRetry):
			}
			continue
		}
		waits(false)
		lost, err := l.keep(ctx, asked, f)
		if !lost || ctx.Err() != nil {
			return err
		}
		l.Log.Warn("exclusive lease lost; another node may take over", "lease", l.Name)
		waits(true)
	}
	return nil
}

// keep runs f under the lease that was acquired by a call at a time.
func (l *ExclusiveLease) keep(ctx context.Context, asked time.Time, f func(context.Context) error) (lost bool, err error) {
	own, end := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() { l.renew(ctx, asked, ended, end) })
	defer func() {
		close(ended)
		renewing.Wait()
		lost = errors.Is(context.Cause(own), errLeaseLost)
		end(nil)
		l.release(ctx)
	}()
	return false, f(own)
}

// renew renews the lease until f has ended, also beyond the end of ctx. It ends f
// if the lease is lost.
func (l *ExclusiveLease) renew(ctx context.Context, asked time.Time, ended <-chan struct{}, end context.CancelCauseFunc) {
	expiry := time.AfterFunc(time.Until(asked.Add(leaseUsable)), func() { end(errLeaseLost) })
	defer expiry.Stop()
	for wait := renewEvery; ; {
		select {
		case <-ended:
			return
		case <-time.After(wait):
		}
		asked, wait = time.Now(), renewEvery
		acquired, err := l.acquire(ctx)
		switch {
		case err != nil:
			wait = leaseRetry
		case !acquired:
			end(errLeaseLost)
			return
		case !expiry.Stop():
			return // f's ctx has ended already
		default:
			expiry.Reset(time.Until(asked.Add(leaseUsable)))
		}
	}
}

// acquire takes or renews the lease. The end of ctx does not cut the call short: its
// outcome would be unknown, and the lease could not be released for sure.
func (l *ExclusiveLease) acquire(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
	defer cancel()
	acquired, err := l.Store.AcquireLease(ctx, l.Name, leaseDuration)
	if err != nil {
		l.Log.Warn("acquire exclusive lease", "lease", l.Name, "err", err)
	}
	return acquired, err
}

func (l *ExclusiveLease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
	defer cancel()
	if err := l.Store.ReleaseLease(ctx, l.Name); err != nil {
		l.Log.Warn("release exclusive lease", "lease", l.Name, "err", err)
	}
}
