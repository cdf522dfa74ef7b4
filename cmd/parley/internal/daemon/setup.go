package daemon

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"parley/adapters"
	"parley/adapters/deliver"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
)

// heir is an adapter that continues the paces of the workspace's previous adapter, because the
// platform counts the calls of both together.
type heir interface{ Inherit(old adapters.Adapter) }

// configure makes a setup and accounts from a configuration and brings them into use. Workspaces and agents
// without changes keep their adapters and clients. An error means that they did not
// come into use, so nothing may fail afterwards.
func (d *Daemon) configure(ctx context.Context, c *config.Config) error {
	if err := admitLocal(c); err != nil {
		return err
	}
	before, next := d.accounts.all(), map[string]*account{}
	for _, w := range c.Workspaces {
		a, err := d.takeOver(ctx, before[w.ID], w)
		if err != nil {
			return err
		}
		next[w.ID] = a
	}
	setup := d.Prepare(c)
	if err := d.Journal.Threads.Configured(ctx, slices.Collect(maps.Keys(next))); err != nil {
		return err
	}
	if err := errors.Join(d.pauses.Read(ctx), d.strangers.Read(ctx)); err != nil {
		return err
	}
	if err := d.Ingest.Configure(ctx, ingestWorkspaces(next, setup, d.log)); err != nil {
		return err
	}
	for _, w := range c.Workspaces {
		if err := d.schedules.Configure(ctx, w.ID, w.TimeZone, w.Schedules); err != nil {
			return err
		}
	}
	removed := d.Use(setup)
	d.byID.Store(&next)
	if d.logging != nil {
		d.logging(c.Log)
	}
	for _, w := range c.Warnings {
		d.log.Warn("the configuration has a warning", "warning", w.String())
	}
	d.metrics.Forget(slices.DeleteFunc(slices.Collect(maps.Keys(before)), func(id string) bool { return next[id] != nil }), removed)
	d.metrics.Configured(true)
	d.assignOrphans(ctx)
	return nil
}

// takeOver keeps the adapter of a workspace whose account has not changed, unless the platform has
// refused it: the operator may have resolved that on the platform.
func (d *Daemon) takeOver(ctx context.Context, old *account, w config.Workspace) (*account, error) {
	a := &account{Workspace: w, platform: d.platforms[w.Platform], links: &links{states: map[string]adapters.Status{}}}
	if old != nil && old.Platform == w.Platform && reflect.DeepEqual(old.Config, w.Config) && !old.links.refused() {
		a.adapter, a.names, a.backfill, a.stop, a.links = old.adapter, old.names, old.backfill, old.stop, old.links
		return a, nil
	}
	a.adapter = a.platform.New(w.ID, w.Config)
	if heir, ok := a.adapter.(heir); ok && old != nil {
		heir.Inherit(old.adapter)
	}
	if m, ok := a.adapter.(adapters.Metered); ok {
		m.UseMeter(d.metrics.Meter(w.ID))
	}
	if s, ok := a.adapter.(adapters.Stateful); ok {
		s.UseState(d.Journal.Threads.AdapterState(w.ID))
	}
	namer, _ := a.adapter.(adapters.Namer)
	a.names = adapters.NewNames(namer)
	var err error
	a.backfill, err = d.newBackfill(ctx, a)
	return a, err
}

// platform returns the platform to which a workspace's deliveries go.
func (d *Daemon) platform(workspace string) (deliver.Platform, bool) {
	a := d.account(workspace)
	if a == nil {
		return deliver.Platform{}, false
	}
	sender, _ := a.adapter.(adapters.Sender)
	page := ""
	if a.platform.Name == event.Web {
		page = d.publicURL() + "/chat?thread="
	}
	return deliver.Platform{
		Page:   page,
		Sender: sender, Limits: a.adapter.Limits(),
		Unknown: func(d *outbox.Delivery) string { return a.Channel(d.Channel, d.Parent).Turns.Unknown },
		Beside: func(channel, parent string) bool {
			return a.Channel(channel, parent).Policy.Reply == ingest.ReplyChannel
		},
		Shows: func(agent, messages string) bool { return d.shows(workspace, agent, messages) },
		Of:    a.platform, Agent: func(channel string) string { return a.Channel(channel, "").Agent },
	}, true
}
