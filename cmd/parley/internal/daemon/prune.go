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
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
