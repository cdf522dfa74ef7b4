package daemon

import (
	"context"
	"reflect"
	"sync"
	"time"
)

const (
	// fetchTimeout bounds the copying of one attachment.
	fetchTimeout = 30 * time.Second
	// pruneEvery is how often what is too old is looked for.
	pruneEvery = 10 * time.Minute
	// draftAge is how old a half-written file is before nobody can be writing it.
	draftAge = 24 * time.Hour
)

// reloads reads the configuration again each time that Reload was called.
func (d *Daemon) reloads(serve, claim, work context.Context, workers *sync.WaitGroup) error {
	for {
		select {
		case <-claim.Done():
			return nil
		case <-d.reloading:
			d.reload(serve, claim, work, workers)
		}
	}
}

// Reload asks the daemon to read its configuration again. It returns at once.
func (d *Daemon) Reload() {
	select {
	case d.reloading <- struct{}{}:
	default: // one is to come already
	}
}

// reload makes the files' present content current; where it is faulty, the last
// good one stays.
func (d *Daemon) reload(serve, claim, work context.Context, workers *sync.WaitGroup) {
	next, err := d.load()
	if err != nil {
		d.log.Error("the configuration has faults; the last good one stays", "err", err)
		return
	}
	before := d.current.Load()
	if next.Listen != before.config.Listen || !next.Store.Equal(before.config.Store) || !reflect.DeepEqual(next.Attachments, before.config.Attachments) {
		d.log.Warn("listen, store and attachments take effect at the next start")
	}
	if err := checkListen(next); err != nil {
		d.log.Error("the configuration has faults; the last good one stays", "err", err)
		return
	}
	if err := d.configure(claim, next); err != nil {
		d.log.Error("the configuration can't be applied; the last good one stays", "err", err)
		return
	}
	after := d.current.Load()
	for id, old := range before.accounts {
		if now := after.accounts[id]; (now == nil || now.adapter != old.adapter) && old.stop != nil {
			old.stop()
		}
	}
	d.startAccounts(serve)
	d.startLanes(claim, work, workers)
	d.log.Info("the configuration was reloaded", "workspaces", len(next.Workspaces), "agents", len(next.Agents))
}
