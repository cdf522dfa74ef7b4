package daemon

import (
	"context"
	"time"
)

const (
	// attendEvery is the time between two times that this node says that it listens,
	// and attendFor how long one of them holds: a node that has died is thought to
	// listen for so long.
	attendEvery = 4 * time.Second
	attendFor   = 12 * time.Second
)

// attend says that this node listens, and looks whether others do.
func (d *Daemon) attend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attendEvery)
	defer cancel()
	others, err := d.journal.Attend(ctx, attendFor)
	if err == nil {
		d.others.Store(others)
	}
	return err
}

// present says so until ctx ends, and then no more.
func (d *Daemon) present(ctx context.Context) error {
	_ = every(ctx, attendEvery, func(ctx context.Context) {
		if err := d.attend(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("say that this node listens", "err", err)
		}
	})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	return d.journal.Leave(ctx)
}
