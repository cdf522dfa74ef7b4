package sqlite

import (
	"context"
	"log/slog"
	"time"

	"parley/ingest/wake"
)

// checkpointer moves the write-ahead log into the database beside the commits.
//
// A passive checkpoint delays no commit. After it has caught up, the next commit writes
// at the log's beginning again. Writers that never pause stay ahead of it, so the
// committer itself restarts the log each time that longest pages have been written;
// little is left to move then.
type checkpointer struct {
	conn    *conn
	log     *slog.Logger
	passive int // pages after which a passive checkpoint is due
	longest int // pages after which the log begins again
	due     wake.Signal
	erased  wake.Signal   // words were removed, which the log may still have
	erase   time.Duration // the wait before the log is truncated after that

	// Pages since the last signal, and since the log's beginning. The committer owns
	// them.
	grown, length int
}

func newCheckpointer(ctx context.Context, path string, o Options) (*checkpointer, error) {
	c, err := connect(ctx, path, o.vfs, "busy_timeout=0", "synchronous=FULL", "wal_autocheckpoint=0", "cache_size=-256", "mmap_size=0")
	if err != nil {
		return nil, err
	}
	return &checkpointer{conn: c, log: o.Log, passive: o.passivePages, longest: o.longestPages, due: wake.NewSignal(), erased: wake.NewSignal(), erase: o.erase}, nil
}

// run serves the signals until quit is closed. It repeats a failed checkpoint after the
// log has grown further: nothing is lost while the log exists.
func (k *checkpointer) run(quit <-chan struct{}) {
	var truncate <-chan time.Time // nil: nothing was erased
	for {
		select {
		case <-quit:
			return
		case <-k.erased:
			if truncate == nil {
				truncate = time.After(k.erase)
			}
		case <-truncate:
			truncate = nil
			if busy, err := checkpoint(k.conn, "TRUNCATE"); busy || err != nil {
				truncate = time.After(k.erase / 10) // a reader or a commit uses the log
			}
		case <-k.due:
			if _, err := checkpoint(k.conn, "PASSIVE"); err != nil {
				k.log.Warn("the journal's log cannot be moved into the database", "error", err)
			}
		}
	}
}

// wrote adds the pages of a commit on c that has just ended.
func (k *checkpointer) wrote(c *conn, pages int) {
	k.grown += pages
	k.length += pages
	if k.grown >= k.passive {
		k.grown = 0
		k.due.Set()
	}
	if k.length >= k.longest {
		k.length = k.restart(c)
	}
}

// restart makes the next commit write at the log's beginning. A reader or a passive
// checkpoint that is using the log prevents that; the committer then tries again soon.
func (k *checkpointer) restart(c *conn) (length int) {
	busy, err := checkpoint(c, "RESTART")
	if err != nil {
		k.log.Warn("the journal's log cannot be restarted", "error", err)
	}
	if busy || err != nil {
		return max(0, k.longest-k.passive)
	}
	return 0
}

// checkpoint runs one of SQLite's checkpoints. busy says that it did not finish.
// https://www.sqlite.org/pragma.html#pragma_wal_checkpoint
func checkpoint(c *conn, mode string) (busy bool, err error) {
	var pages, moved int64
	err = c.row([]any{&busy, &pages, &moved}, "PRAGMA wal_checkpoint("+mode+")")
	return busy, err
}
