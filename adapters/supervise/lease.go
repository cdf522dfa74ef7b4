package supervise

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/adapters"
	"parley/ingest/wake"
)

// LeaseStore stores exclusive leases for all nodes that share it. The journal implements
// it.
type LeaseStore interface {
	// AcquireLease acquires the named lease, or renews it, for the given duration from
	// now. It returns false while another node has the lease.
	AcquireLease(ctx context.Context, name string, duration time.Duration) (bool, error)
	// ReleaseLease gives up the lease if this node has it.
	ReleaseLease(ctx context.Context, name string) error
}

const (
	// leaseDuration bounds how long a dead node keeps an exclusive lease. Another node
	// acquires it at most a second later.
	leaseDuration = 8 * time.Second
	// leaseUsable is how long a node uses a lease after the start of the call that
	// acquired or renewed it. The rest of the lease's duration lets the work end, and
	// covers clocks that differ.
	leaseUsable = 6 * time.Second
	// renewEvery is the time between two renewals, and bounds each call to the store.
	renewEvery = 2 * time.Second
	// leaseRetry is the time between two attempts while another node has the lease, and
	// after a failed renewal.
	leaseRetry = time.Second
)

// Lease is one node's right to something that only one node may run.
type Lease struct {
	Store LeaseStore
	Name  string // of the lease in the store
	// Report is called with Standby if this node has to wait for the lease, and with Starting
	// when the wait is over. It may be nil.
	Report func(adapters.ConnectionState)
	Log    *slog.Logger
}

// errLeaseLost ends the work of a node that has lost its lease.
var errLeaseLost = errors.New("exclusive lease lost")

// While waits for the lease, runs f, and releases the lease after f has returned.
// f's ctx ends with ctx, or if the lease cannot be renewed, well before another
// node may have it; While then waits for the lease and runs f again. It returns
// f's error, or nil if ctx ends first.
func (l *Lease) While(ctx context.Context, f func(ctx context.Context) error) error {
	state := adapters.Starting
	report := func(now adapters.ConnectionState) {
		if state != now && l.Report != nil {
			l.Report(now)
		}
		state = now
	}
	for ctx.Err() == nil {
		asked := time.Now()
		if acquired, _ := l.acquire(ctx); !acquired {
			report(adapters.Standby)
			wake.After(ctx, leaseRetry)
			continue
		}
		report(adapters.Starting)
		lost, err := l.keep(ctx, asked, f)
		if !lost || ctx.Err() != nil {
			return err
		}
		l.Log.Warn("exclusive lease lost; another node may take over", "lease", l.Name)
		report(adapters.Standby)
	}
	return nil
}

// keep runs f under the lease that a call at the time asked acquired.
func (l *Lease) keep(ctx context.Context, asked time.Time, f func(context.Context) error) (lost bool, err error) {
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

// renew renews the lease until f has ended, even after ctx has ended. It ends f if the
// lease is lost.
func (l *Lease) renew(ctx context.Context, asked time.Time, ended <-chan struct{}, end context.CancelCauseFunc) {
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

// acquire acquires or renews the lease. The end of ctx does not interrupt the call: its
// result would be unknown, and the node could not be sure to release the lease.
func (l *Lease) acquire(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
	defer cancel()
	acquired, err := l.Store.AcquireLease(ctx, l.Name, leaseDuration)
	if err != nil {
		l.Log.Warn("acquire exclusive lease", "lease", l.Name, "err", err)
	}
	return acquired, err
}

func (l *Lease) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
	defer cancel()
	if err := l.Store.ReleaseLease(ctx, l.Name); err != nil {
		l.Log.Warn("release exclusive lease", "lease", l.Name, "err", err)
	}
}
