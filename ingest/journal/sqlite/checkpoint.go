package sqlite

import (
	"context"
	"log/slog"
)

// checkpointer moves the write-ahead log into the database beside the commits.
//
// A passive checkpoint delays nobody, and once it has caught up the next commit
// writes at the log's beginning again. Writers that never pause keep ahead of
// it, so the committer itself restarts the log each time that its length has
// been written; little is left to move then.
type checkpointer struct {
	conn    *conn
	log     *slog.Logger
	passive int // pages after which a passive checkpoint is due
	longest int // pages after which the log begins again
	due     chan struct{}

	// The committer's: pages since the last signal, and since the log began.
	grown, length int
}

func newCheckpointer(ctx context.Context, path string, o options) (*checkpointer, error) {
	c, err := connect(ctx, path, o.vfs, "busy_timeout=0", "synchronous=FULL", "wal_autocheckpoint=0", "cache_size=-256", "mmap_size=0")
	if err != nil {
		return nil, err
	}
	return &checkpointer{conn: c, log: o.log, passive: o.passivePages, longest: o.longestPages, due: make(chan struct{}, 1)}, nil
}

// run serves the signals until quit is closed. What fails is tried again when
// the log has grown further: nothing is lost as long as the log is there.
func (k *checkpointer) run(quit <-chan struct{}) {
	for {
		select {
		case <-quit:
			return
		case <-k.due:
			if _, err := checkpoint(k.conn, "PASSIVE"); err != nil {
				k.log.Warn("the journal's log could not be moved into the database", "error", err)
			}
		}
	}
}

// wrote tells how many pages a commit on c, which has just ended, has added.
func (k *checkpointer) wrote(c *conn, pages int) {
	k.grown += pages
	k.length += pages
	if k.grown >= k.passive {
		k.grown = 0
		select {
		case k.due <- struct{}{}:
		default: // one is due already
		}
	}
	if k.length >= k.longest {
		k.length = k.restart(c)
	}
}

// restart lets the next commit write at the log's beginning. A reader or a
// passive checkpoint that is using the log prevents that; it is tried again soon.
func (k *checkpointer) restart(c *conn) (length int) {
	busy, err := checkpoint(c, "RESTART")
	if err != nil {
		k.log.Warn("the journal's log could not be begun again", "error", err)
	}
	if busy || err != nil {
		return max(0, k.longest-k.passive)
	}
	return 0
}

// checkpoint runs one of SQLite's checkpoints; busy says that it was not finished.
// https://www.sqlite.org/pragma.html#pragma_wal_checkpoint
func checkpoint(c *conn, mode string) (busy bool, err error) {
	var pages, moved int64
	_, err = c.row([]any{&busy, &pages, &moved}, "PRAGMA wal_checkpoint("+mode+")")
	return busy, err
}
