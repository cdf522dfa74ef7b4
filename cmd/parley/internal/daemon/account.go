package daemon

import (
	"context"
	"fmt"
	"path"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/backfill"
	"parley/adapters/supervise"
	"parley/cmd/parley/internal/doctor"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
	"parley/ingest/wake"
)

// startAccounts starts the adapters that are not running yet. A workspace's new adapter
// starts when its previous one has ended.
func (d *Daemon) startAccounts(ctx context.Context) {
	for _, a := range d.accounts.all() {
		if a.stop != nil {
			continue
		}
		var connections []adapters.Connection
		if connector, ok := a.adapter.(adapters.Connector); ok {
			connections = connector.Connections()
		}
		if len(connections) == 0 {
			a.stop = func() {}
			d.report(a, "", adapters.Status{State: adapters.Up, Since: d.now().UTC()})
			d.sayHello(a)
			continue
		}
		var own context.Context
		own, a.stop = context.WithCancel(ctx)
		previous, ended := d.running[a.ID], make(chan struct{})
		d.running[a.ID] = ended
		d.connected.Go(func() {
			defer close(ended)
			if previous != nil {
				<-previous
			}
			var running sync.WaitGroup
			if a.backfill != nil {
				running.Go(func() { a.backfill.Run(own) })
			}
			for _, c := range connections {
				running.Go(func() { d.supervise(own, a, c) })
			}
			running.Wait()
		})
	}
}

// supervise runs one of an account's connections until ctx ends, and passes its state on.
func (d *Daemon) supervise(ctx context.Context, a *account, c adapters.Connection) {
	supervise.Run(ctx, supervise.Connection{
		Connection: c,
		Each:       func(ctx context.Context, c adapters.Connection) { d.supervise(ctx, a, c) },
		Inbox:      timed{d.Ingest, d.metrics, d.storage},
		Lease:      supervise.Lease{Store: d.Journal.Threads, Name: path.Join("workspace", a.ID, c.Name)},
		Link: adapters.Link{
			Up: func(self event.Self) {
				if !d.introduce(ctx, a, self) {
					return
				}
				d.sayHello(a)
				if a.backfill != nil && a.links.up(c.Name) {
					a.backfill.Up(ctx)
				}
			},
			Others: d.others(a),
			Missed: func(channel string, since time.Time) {
				if a.backfill != nil {
					a.backfill.Missed(channel, since)
				}
			},
			State: d.Journal.Threads.AdapterState(a.ID), Log: d.log.With("workspace", a.ID),
			Wants: func() adapters.Wants { return doctor.Wants(d.publicURL(), d.Setup().Config, d.successor(a).Workspace) },
		},
		Report: func(s adapters.Status) { d.report(d.successor(a), c.Name, s) },
	})
}

// newBackfill returns the backfill of an account; nil if its adapter cannot read missed messages.
func (d *Daemon) newBackfill(ctx context.Context, a *account) (*backfill.Workspace, error) {
	platform, ok := a.adapter.(adapters.Backfiller)
	if !ok {
		return nil, nil
	}
	hook, ok := a.adapter.(adapters.Hook)
	b, err := backfill.New(ctx, backfill.Parts{
		ID: a.ID, Platform: platform, HookOnly: ok && hook.HookOnly(), Inbox: d.Ingest, Store: d.Journal.Threads, Lease: supervise.Lease{Store: d.Journal.Threads},
		Config: func() backfill.Config { return d.successor(a).Backfill },
		Now:    d.wall, Log: d.log.With("workspace", a.ID),
	})
	if err != nil {
		return nil, fmt.Errorf("read the gaps of %s: %w", a.ID, err)
	}
	return b, nil
}

// successor returns the account that has a's adapter since the last reload; a itself if
// there is none.
func (d *Daemon) successor(a *account) *account {
	if now := d.account(a.ID); now != nil && now.adapter == a.adapter {
		return now
	}
	return a
}

// report stores the state of an account's connection. A workspace is up only on the nodes
// that have its connections, and on standby on the other nodes.
func (d *Daemon) report(a *account, connection string, s adapters.Status) {
	s = a.links.report(connection, s)
	d.metrics.Up(a.ID, s.State == adapters.Up)
	switch {
	case a.backfill == nil || s.State == adapters.Up:
	case s.State == adapters.Standby:
		a.backfill.Standby()
	default:
		a.backfill.Down()
	}
}

// others returns the function that notes connections of other programs; nil if nodes share the account.
func (d *Daemon) others(a *account) func(n int) {
	if d.shared {
		return nil
	}
	return func(n int) {
		switch {
		case !d.successor(a).links.shares(n):
		case n > 0:
			d.log.Warn("another program has the same app, and each event goes to one program alone", "workspace", a.ID, "its_connections", n)
		default:
			d.log.Info("no other program has the same app any more", "workspace", a.ID)
		}
	}
}

// introduceAgain is the wait after a failure to store our identity.
const introduceAgain = time.Second

// introduce stores our own identity on the platform. No envelope of the account is read before,
// so introduce tries until it succeeds or ctx ends. It reports whether it has succeeded.
func (d *Daemon) introduce(ctx context.Context, a *account, self event.Self) bool {
	for {
		err := d.storeSelf(ctx, a, self)
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			d.log.Error("own identity not stored", "workspace", a.ID, "err", err)
		}
		if !wake.After(ctx, introduceAgain) {
			return false
		}
	}
}

func (d *Daemon) storeSelf(ctx context.Context, a *account, self event.Self) error {
	known, err := d.Journal.Threads.Self(ctx, a.ID)
	if err != nil {
		return err
	}
	if known.TeamID == self.TeamID && known.UserID == self.UserID && self.AppID == "" {
		self.AppID = known.AppID // the platform does not always report it
	}
	return d.Ingest.SetSelf(ctx, a.Platform, a.ID, self)
}

// Ready implements turn.History. The turns of a workspace that was removed wait in the store,
// until it is configured again or another node takes over the thread.
func (d *Daemon) Ready(lease *threads.Claim, wake func()) (ready, gap bool) {
	switch a := d.account(lease.Workspace); {
	case a == nil:
		return false, false
	case a.backfill == nil, event.IsWorkstream(lease.Key), event.IsTick(lease.Key):
		return true, false
	default:
		return a.backfill.Ready(lease.Key, wake)
	}
}

// ReadHistory implements turn.History.
func (d *Daemon) ReadHistory(ctx context.Context, lease *threads.Claim, run *runs.Run, newest int) error {
	return d.Ingest.ReadHistory(ctx, lease, run, newest)
}
