package sqlite

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// checkpointer moves the write-ahead log into the database beside the commits.
//
// A passive checkpoint delays nobody, and once it has caught up the next commit
// writes at the log's beginning again. Writers that never pause keep ahead of it
// for ever; it then asks the committer to empty the log between two commits.
type checkpointer struct {
	conn     *conn
	log      *slog.Logger
	passive  int // pages after which a checkpoint is due
	truncate int // pages after which the log is too long

	grown   int // pages since the last signal; the committer's
	due     chan struct{}
	tooLong atomic.Bool
}

func newCheckpointer(ctx context.Context, path string, o options) (*checkpointer, error) {
	c, err := connect(ctx, path, o.vfs, "busy_timeout=0", "synchronous=FULL", "wal_autocheckpoint=0", "cache_size=-256", "mmap_size=0")
	if err != nil {
		return nil, err
	}
	return &checkpointer{conn: c, log: o.log, passive: o.passivePages, truncate: o.truncatePages, due: make(chan struct{}, 1)}, nil
}

// wrote tells how many pages a commit has added to the log.
func (k *checkpointer) wrote(pages int) {
	if k.grown += pages; k.grown < k.passive {
		return
	}
	k.grown = 0
	select {
	case k.due <- struct{}{}:
	default: // one is due already
	}
}

func (k *checkpointer) run(quit <-chan struct{}) {
	for {
		select {
		case <-quit:
			return
		case <-k.due:
			k.once()
		}
	}
}

// once runs a passive checkpoint. What fails is tried again when the log has
// grown further: nothing is lost as long as the log is there.
func (k *checkpointer) once() {
	_, length, err := checkpoint(k.conn, "PASSIVE")
	if err != nil {
		k.log.Warn("the journal's log could not be moved into the database", "error", err)
	}
	if length > k.truncate {
		k.tooLong.Store(true)
	}
}

// relieve empties the log on the committer's connection if it is too long. A
// reader that still needs it makes that fail; the next passive checkpoint asks again.
func (k *checkpointer) relieve(c *conn) {
	if !k.tooLong.CompareAndSwap(true, false) {
		return
	}
	if busy, length, err := checkpoint(c, "TRUNCATE"); err != nil || busy {
		k.log.Warn("the journal's log could not be emptied", "pages", length, "in_use", busy, "error", err)
	}
}

// checkpoint runs one of SQLite's checkpoints and returns the log's length in pages.
// https://www.sqlite.org/pragma.html#pragma_wal_checkpoint
func checkpoint(c *conn, mode string) (busy bool, length int, err error) {
	var pages, moved int64
	_, err = c.row([]any{&busy, &pages, &moved}, "PRAGMA wal_checkpoint("+mode+")")
	return busy, int(pages), err
}
