package daemon

import (
	"context"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
)

const (
	// greeters is the number of threads that are greeted at the same time.
	greeters = 4
	// maxGreetings bounds the waiting greetings. A greeting is a courtesy, so further
	// threads get none.
	maxGreetings = 256
)

// greeting is a thread that a person has opened.
type greeting struct {
	workspace string
	thread    event.ThreadKey
}

// intakeObserver observes the results of intake: it counts them, and asks for a greeting of
// each opened thread.
type intakeObserver struct {
	*metrics
	opened chan<- greeting
}

// Settled implements ingest.Observer.
func (d intakeObserver) Settled(workspace string, envelope int64, o journal.Outcome) {
	d.metrics.Settled(workspace, envelope, o)
	if o.Opened {
		select {
		case d.opened <- greeting{workspace, o.Thread}:
		default:
		}
	}
}

// greet greets opened threads one by one, until ctx ends.
func (d *Daemon) greet(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case g := <-d.opened:
			a := d.current.Load().accounts[g.workspace]
			if a == nil {
				continue
			}
			greeter, ok := a.adapter.(adapters.Greeter)
			if !ok {
				continue
			}
			if err := greeter.Greet(ctx, g.thread); err != nil && ctx.Err() == nil {
				d.log.Warn("opened thread not greeted", "workspace", g.workspace, "err", err)
			}
		}
	}
}
