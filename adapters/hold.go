package adapters

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Exclusive is a Runner whose connection a workspace should have once, however
// many nodes share the store: a gateway's session, or a polling cursor. One node
// runs it, the others stand by. A Runner without it runs on every node.
type Exclusive interface {
	// Exclusive says whether that holds for the adapter as it is configured. If
	// so, Run must have let go of the connection when it returns, and must return
	// within a second of its ctx's end: soon after, another node may have the
	// connection. When Run returns for another reason the next one to run may be
	// another node's, so that what a platform does every day, such as asking for
	// a new connection, is better settled within Run.
	Exclusive() bool
}

// Holds is where the nodes that share a store agree on who of them has what one
// alone may have. The journal is one.
type Holds interface {
	// Hold takes what goes by a name, or keeps it, for a lease from now on; false
	// while another node has it.
	Hold(ctx context.Context, name string, lease time.Duration) (bool, error)
	// Drop gives back what this node has.
	Drop(ctx context.Context, name string) error
}

// DefaultLease is how long a node that has died keeps what it had. Another node
// has it a second later.
const DefaultLease = 8 * time.Second

// Hold is something that one node does at a time.
type Hold struct {
	Holds Holds
	Name  string        // of what is held, in the store
	Lease time.Duration // 0: DefaultLease
	// Waits hears that this node has to wait, and that it waits no more; nil for nobody.
	Waits func(bool)
	Log   *slog.Logger
}

// errLost is why a node that has not ended must stop using what it held.
var errLost = errors.New("the hold is lost")

func (h *Hold) lease() time.Duration {
	if h.Lease > 0 {
		return h.Lease
	}
	return DefaultLease
}

// every is the time between two renewals, and the longest that a call may take.
func (h *Hold) every() time.Duration { return h.lease() / 4 }

// use is how long the hold is used, from before the call that took or renewed
// it. The rest of the lease is for f to end in, and for clocks that differ.
func (h *Hold) use() time.Duration { return h.lease() * 3 / 4 }

// poll is the time until the next look while another node has it, and until the
// next try where a renewal failed.
func (h *Hold) poll() time.Duration { return h.lease() / 8 }

// While waits until this node has the hold, runs f, and gives the hold back once
// f has returned. f's ctx ends with ctx, or where the hold can't be renewed, well
// before another node may have it; While then waits for it again, and runs f
// again. It returns what f returned; nil where ctx ends first.
func (h *Hold) While(ctx context.Context, f func(ctx context.Context) error) error {
	for waits := false; ; waits = true {
		asked, held := h.take(ctx, waits)
		if !held {
			return nil
		}
		lost, err := h.keep(ctx, asked, f)
		if !lost || ctx.Err() != nil {
			return err
		}
		h.Log.Warn("what one node alone may have is left to the others, since it could not be kept", "hold", h.Name)
		h.waits(true)
	}
}

// take asks for the hold until this node has it, or ctx has ended. It returns
// when it asked.
func (h *Hold) take(ctx context.Context, waits bool) (asked time.Time, held bool) {
	for ctx.Err() == nil {
		asked = time.Now()
		held, err := h.ask(ctx)
		if held {
			if waits {
				h.waits(false)
			}
			return asked, true
		}
		if err != nil {
			h.Log.Warn("ask for what one node alone may have", "hold", h.Name, "err", err)
		}
		if !waits {
			waits = true
			h.waits(true)
		}
		select {
		case <-ctx.Done():
		case <-time.After(h.poll()):
		}
	}
	return asked, false
}

// keep runs f under the hold that was asked for at a time.
func (h *Hold) keep(ctx context.Context, asked time.Time, f func(context.Context) error) (lost bool, err error) {
	own, end := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	var renewing sync.WaitGroup
	renewing.Go(func() { h.renew(ctx, asked, ended, end) })
	defer func() {
		close(ended)
		renewing.Wait()
		lost = errors.Is(context.Cause(own), errLost)
		end(nil)
		h.drop(ctx)
	}()
	return false, f(own)
}

// renew keeps the hold until f has ended, also beyond the end of ctx, and ends f
// where the hold is lost.
func (h *Hold) renew(ctx context.Context, asked time.Time, ended <-chan struct{}, end context.CancelCauseFunc) {
	expiry := time.AfterFunc(time.Until(asked.Add(h.use())), func() { end(errLost) })
	defer expiry.Stop()
	for wait := h.every(); ; {
		select {
		case <-ended:
			return
		case <-time.After(wait):
		}
		asked, wait = time.Now(), h.every()
		held, err := h.ask(ctx)
		switch {
		case err != nil:
			wait = h.poll()
			h.Log.Warn("keep what one node alone may have", "hold", h.Name, "err", err)
		case !held:
			end(errLost)
			return
		case !expiry.Stop():
			return // f has been told to end
		default:
			expiry.Reset(time.Until(asked.Add(h.use())))
		}
	}
}

// ask takes or renews the hold. It is not cut short by the end of ctx: what then
// came of it would be unknown, and the hold could not be given back for sure.
func (h *Hold) ask(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.every())
	defer cancel()
	return h.Holds.Hold(ctx, h.Name, h.lease())
}

func (h *Hold) drop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.every())
	defer cancel()
	if err := h.Holds.Drop(ctx, h.Name); err != nil {
		h.Log.Warn("give back what one node alone may have", "hold", h.Name, "err", err)
	}
}

func (h *Hold) waits(waits bool) {
	if h.Waits != nil {
		h.Waits(waits)
	}
}
