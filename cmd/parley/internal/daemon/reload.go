package daemon

import (
	"context"
	"reflect"
	"sync"
	"time"

	"parley/config"
)

const (
	// fetchTimeout bounds the copying of one attachment.
	fetchTimeout = 30 * time.Second
	// pruneEvery is the interval between two removals of old rows and files.
	pruneEvery = 10 * time.Minute
	// draftAge is the age after which an unfinished file cannot have a writer any more.
	draftAge = 24 * time.Hour
)

// reloads reads the configuration again for each call of Reload, until claim ends.
func (d *Daemon) reloads(serve, claim, work context.Context, workers *sync.WaitGroup) error {
	for {
		select {
		case <-claim.Done():
			return nil
		case done := <-d.reloading:
			d.reload(serve, claim, work, workers)
			close(done)
		}
	}
}

// Reload asks the daemon to read its configuration again, and returns at once. The channel is
// closed when the daemon has applied or refused the configuration. It is nil if an earlier
// call is still pending: that reload reads the same files.
func (d *Daemon) Reload() <-chan struct{} {
	done := make(chan struct{})
	select {
	case d.reloading <- done:
		return done
	default:
		return nil
	}
}

// reload applies the present content of the files. If the content has a fault, the last
// good configuration stays.
func (d *Daemon) reload(serve, claim, work context.Context, workers *sync.WaitGroup) {
	next, err := d.load()
	before := d.current.Load()
	if err == nil && hasLocal(next) && !hasLocal(before.config) {
		err = config.Faults{{File: config.File, Line: 1, Words: "the files of the workspaces are missing; without them the next start runs the built-in workspace"}}
	}
	if err != nil {
		d.log.Error("the configuration has faults; the last good one stays", "err", err)
		return
	}
	if next.Listen != before.config.Listen || !reflect.DeepEqual(next.Store, before.config.Store) || !reflect.DeepEqual(next.Attachments, before.config.Attachments) {
		d.log.Warn("listen, store and attachments take effect at the next start", "restart", true)
	}
	if err := d.configure(claim, next); claim.Err() != nil {
		return // the daemon stops
	} else if err != nil {
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
	d.serveAgents(claim, work, workers)
	d.log.Info("the configuration was reloaded", "workspaces", len(next.Workspaces), "agents", len(next.Agents))
}
