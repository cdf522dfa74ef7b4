package daemon

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/adapters"
)

const (
	// orphansEvery is how often turns are looked for whose agent is gone.
	orphansEvery = time.Minute
	// orphanAge is how long a turn waits for an agent that this node does not know,
	// while others may have another configuration.
	orphanAge = 2 * time.Minute
)

// retain removes what is older than the configured retention, and gives the turns
// of agents that are gone to another one, until ctx ends. One node does it for all.
func (d *Daemon) retain(ctx context.Context) error {
	hold := adapters.Hold{Holds: d.journal, Name: "retention", Log: d.log}
	return hold.While(ctx, func(ctx context.Context) error {
		var orphans sync.WaitGroup
		defer orphans.Wait()
		orphans.Go(func() {
			_ = every(ctx, orphansEvery, func(ctx context.Context) {
				if err := d.assignOrphans(ctx, d.current.Load()); err != nil && ctx.Err() == nil {
					d.log.Warn("look for turns whose agent is gone", "err", err)
				}
			})
		})
		return every(ctx, pruneEvery, d.prune)
	})
}

// assignOrphans gives the turns of agents that a setup does not have to its first one.
func (d *Daemon) assignOrphans(ctx context.Context, s *setup) error {
	return d.journal.AssignOrphans(ctx, slices.Collect(maps.Keys(s.agents)), s.config.Agents[0].ID, orphanAge)
}

func (d *Daemon) prune(ctx context.Context) {
	c := d.current.Load().config
	retention := c.Retention
	for _, w := range c.Workspaces { // what is read again must be known again
		retention.Keys = max(retention.Keys, w.CatchUp.MaxAge+pruneEvery)
	}
	pruned, err := d.journal.Prune(ctx, retention)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("remove what is too old", "err", err)
	}
	d.log.Debug("removed what is too old", "bodies", pruned.Bodies, "envelopes", pruned.Envelopes, "run_events", pruned.RunEvents)
}

// sweep removes the files that were never finished, until ctx ends.
func (d *Daemon) sweep(ctx context.Context) error {
	return every(ctx, pruneEvery, func(ctx context.Context) {
		if err := d.files.Sweep(ctx, time.Now().Add(-draftAge)); err != nil && ctx.Err() == nil {
			d.log.Warn("remove files that were never finished", "err", err)
		}
	})
}

// every does something now and then again, until ctx ends.
func every(ctx context.Context, pause time.Duration, do func(context.Context)) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		do(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
