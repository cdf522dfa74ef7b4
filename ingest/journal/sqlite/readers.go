package sqlite

import (
	"context"
	"fmt"

	"github.com/jackc/puddle/v2"

	"parley/ingest/journal/storage"
)

// readers is a pool of connections that cannot write. It takes the most recently used
// connection first, so that a journal with few reads keeps few pages in memory.
type readers struct{ *puddle.Pool[*conn] }

func newReaders(path string, o Options) readers { return newReadersAs(path, "", o) }

// newReadersAs is newReaders with connections in a form; see connectAs.
func newReadersAs(path, form string, o Options) readers {
	pool, _ := puddle.NewPool(&puddle.Config[*conn]{
		Constructor: func(ctx context.Context) (*conn, error) {
			return connectAs(ctx, path, o.vfs, form, "busy_timeout=1000", "query_only=ON", "cache_size=-2048", "mmap_size=0")
		},
		Destructor: func(c *conn) { _ = c.close() }, // it has written nothing
		MaxSize:    maxReaders,
	}) // it fails only without a size
	return readers{pool}
}

// close closes the connections after the reads that have begun.
func (r readers) close() {
	if r.Pool != nil {
		r.Close()
	}
}

// read runs fn, in a read transaction if it has more than one query.
func (r readers) read(ctx context.Context, whole bool, fn func(storage.Tx) error) error {
	taken, err := r.Acquire(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("wait to read: %w", context.Cause(ctx))
	}
	if err != nil {
		return unavailable(err)
	}
	c := taken.Value()
	t := &tx{conn: c}
	defer func() {
		t.dead = errDone
		if whole && !c.clean() {
			taken.Destroy() // the connection is broken
			return
		}
		taken.Release()
	}()
	if whole {
		if err := c.run("BEGIN"); err != nil {
			return unavailable(fmt.Errorf("begin to read: %w", err))
		}
	}
	if err := fn(t); err != nil {
		return err
	}
	return t.dead
}
