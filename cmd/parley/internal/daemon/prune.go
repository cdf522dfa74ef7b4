package daemon

import (
	"context"
	"time"
)

// prune removes what is older than the configured retention, until ctx ends.
func (d *Daemon) prune(ctx context.Context) error {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		if err := d.files.Sweep(time.Now().Add(-draftAge)); err != nil {
			d.log.Warn("remove files that were never finished", "err", err)
		}
		pruned, err := d.journal.Prune(ctx, d.current.Load().config.Retention)
		if err != nil && ctx.Err() == nil {
			d.log.Warn("remove what is too old", "err", err)
		}
		d.log.Debug("removed what is too old", "bodies", pruned.Bodies, "envelopes", pruned.Envelopes, "run_events", pruned.RunEvents)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
