package daemon

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/adapters/supervise"
)

const (
	// orphansEvery is the interval between two searches for turns of removed agents.
	orphansEvery = time.Minute
	// orphanAge is the time that a turn waits for an agent that this node does not have,
	// because another node may have another configuration.
	orphanAge = 2 * time.Minute
	// eraseEvery is the interval between two sweeps of the messages that are to leave the store.
	eraseEvery = time.Minute
)

// retain removes rows and empties messages that are older than the configured retention, and gives the turns
// of removed agents to another agent, until ctx ends. One node does this for all nodes.
func (d *Daemon) retain(ctx context.Context) error {
	lease := supervise.Lease{Store: d.Journal.Threads, Name: "retention", Log: d.log}
	return lease.While(ctx, func(ctx context.Context) error {
		d.counts.Store(true)
		defer d.counts.Store(false)
		var orphans sync.WaitGroup
		defer orphans.Wait()
		orphans.Go(func() {
			_ = every(ctx, orphansEvery, nil, d.assignOrphans)
		})
		orphans.Go(func() {
			_ = every(ctx, eraseEvery, nil, d.erase)
		})
		return every(ctx, pruneEvery, nil, d.prune)
	})
}

// searchEvery is the time after which a new message is found.
const searchEvery = time.Second

// fillSearch keeps the index of words up to date until ctx ends. One node does this for all nodes.
func (d *Daemon) fillSearch(ctx context.Context) error {
	lease := supervise.Lease{Store: d.Journal.Threads, Name: "search", Log: d.log}
	return lease.While(ctx, func(ctx context.Context) error {
		return every(ctx, searchEvery, nil, func(ctx context.Context) {
			if err := d.Journal.Search.FillSearch(ctx); err != nil && ctx.Err() == nil {
				d.log.Warn("the index of words is not up to date", "err", err)
			}
		})
	})
}

// assignOrphans gives the turns of agents that the current setup lacks to the first agent of
// the setup. It only logs an error, because retain repeats the call.
func (d *Daemon) assignOrphans(ctx context.Context) {
	s := d.Setup()
	err := d.Journal.Runs.AssignOrphans(ctx, slices.Collect(maps.Keys(s.Agents)), s.Config.Agents[0].ID, orphanAge)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("turns of removed agents not reassigned", "err", err)
	}
}

// prune removes rows that are older than the configured retention.
func (d *Daemon) prune(ctx context.Context) {
	c := d.Setup().Config
	retention := c.Retention
	for _, w := range c.Workspaces { // backfill must recognise messages that it reads a second time
		retention.Keys = max(retention.Keys, w.Backfill.MaxAge+pruneEvery)
	}
	pruned, err := d.Journal.Prune(ctx, retention)
	switch {
	case err == nil:
		d.metrics.Retained()
	case ctx.Err() == nil:
		d.log.Warn("retention pass failed", "err", err)
	}
	d.log.Debug("retention pass ended", "rows", pruned)
}

// erase empties the messages that are to leave the store; see journal.EraseDue.
func (d *Daemon) erase(ctx context.Context) {
	erased, err := d.Journal.EraseDue(ctx, d.Setup().Config.Retention)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("messages that are to leave the store stay for another minute", "err", err)
	}
	if erased.Messages+erased.Answers > 0 {
		d.log.Info("messages have left the store", "messages", erased.Messages, "answers", erased.Answers, "files", erased.Files)
	}
}

// sweep removes unused copies of files at once, and unfinished files after draftAge,
// until ctx ends. It also records which workspaces this node has configured.
func (d *Daemon) sweep(ctx context.Context) error {
	return every(ctx, pruneEvery, d.Journal.Files.UnusedCopies(), func(ctx context.Context) {
		if err := errors.Join(
			d.Journal.Threads.Configured(ctx, slices.Collect(maps.Keys(d.accounts.all()))),
			d.Journal.Files.RemoveCopies(ctx, d.files.Remove),
			d.files.Sweep(time.Now().Add(-draftAge)),
		); err != nil && ctx.Err() == nil {
			d.log.Warn("unused files not removed", "err", err)
		}
	})
}

// every calls do now, after each pause and at each signal of wake, until ctx ends. wake may be nil.
func every(ctx context.Context, pause time.Duration, wake <-chan struct{}, do func(context.Context)) error {
	for tick := time.Tick(pause); ; {
		do(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		case <-wake:
		}
	}
}
