package daemon

import (
	"context"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
)

const (
	// greeters is how many people are greeted at once.
	greeters = 4
	// maxGreetings bounds those who wait for it. It is a courtesy: who comes when so
	// many do finds a thread that says nothing.
	maxGreetings = 256
)

// greeting is a thread that somebody has opened.
type greeting struct {
	workspace string
	thread    event.ThreadKey
}

// doorman is intake's observer: it counts, and sees who has opened a thread.
type doorman struct {
	*metrics
	opened chan<- greeting
}

// Settled implements ingest.Observer.
func (d doorman) Settled(workspace string, envelope int64, o journal.Outcome) {
	d.metrics.Settled(workspace, envelope, o)
	if o.Opened {
		select {
		case d.opened <- greeting{workspace, o.Thread}:
		default:
		}
	}
}

// greet greets one after the other, until ctx ends.
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
				d.log.Warn("greet who opened a thread", "workspace", g.workspace, "err", err)
			}
		}
	}
}
