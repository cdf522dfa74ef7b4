package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"parley/ingest/journal"
)

// readers is a pool of connections that cannot write. It takes the most recently used
// connection first, so that a journal with few reads keeps few pages in memory.
type readers struct {
	connect func(context.Context) (*conn, error)
	slots   chan struct{} // one token for each connection in use

	mu   sync.Mutex
	free []*conn
}

func newReaders(path string, o options) *readers {
	return &readers{
		slots: make(chan struct{}, maxReaders),
		connect: func(ctx context.Context) (*conn, error) {
			return connect(ctx, path, o.vfs, "busy_timeout=1000", "query_only=ON", "cache_size=-2048", "mmap_size=0")
		},
	}
}

// read runs fn, in a read transaction if it has more than one query.
func (r *readers) read(ctx context.Context, whole bool, fn func(journal.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait to read: %w", context.Cause(ctx))
	}
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait to read: %w", context.Cause(ctx))
	}
	defer func() { <-r.slots }()
	c, err := r.take(ctx)
	if err != nil {
		return unavailable(err)
	}
	t := &tx{conn: c}
	defer func() {
		t.dead = errDone
		r.put(c, whole)
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

func (r *readers) take(ctx context.Context) (*conn, error) {
	r.mu.Lock()
	if n := len(r.free); n > 0 {
		c := r.free[n-1]
		r.free = r.free[:n-1]
		r.mu.Unlock()
		return c, nil
	}
	r.mu.Unlock()
	return r.connect(ctx)
}

// put ends the transaction, if there is one, and returns the connection to the pool if it
// still works.
func (r *readers) put(c *conn, begun bool) {
	if begun && !c.clean() {
		_ = c.close() // the connection is broken
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, c)
}

func (r *readers) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, c := range r.free {
		errs = append(errs, c.close())
	}
	r.free = nil
	return errors.Join(errs...)
}
