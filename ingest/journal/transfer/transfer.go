// Package transfer copies a whole journal from one store into an empty one, of the same
// engine or another, and compares the two.
//
// A copy is one pass: it cannot be resumed. During the copy, a row in the table
// unfinished_copy keeps daemons from the target.
package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// The kinds of errors that Copy returns, with journal.ErrUnfinished.
var (
	// ErrInUse means that a node works on one of the stores.
	ErrInUse = errors.New("a daemon uses the store: stop every daemon of this store first (the leases of a killed daemon end within seconds)")
	// ErrNotEmpty means that the target contains rows.
	ErrNotEmpty = errors.New("the store is not empty: start again with an empty one")
	// ErrDiffers means that a table of the copy is not equal to its source.
	ErrDiffers = errors.New("the copy differs from its source")
)

// Store is an engine whose journal can be copied.
type Store interface {
	storage.Engine
	// LastIDs returns, for each table that numbers its rows, the highest id so far.
	// The row with that id may be deleted.
	LastIDs(ctx context.Context) (map[string]int64, error)
	// SkipIDs makes each table's next id higher than the given one and than the ids
	// of its rows.
	SkipIDs(ctx context.Context, last map[string]int64) error
}

// Options bound the memory of Copy. The zero value has the defaults.
type Options struct {
	Rows  int // in a batch; 0: 500
	Bytes int // of texts and blobs in a batch, unless one row has more; 0: 4 MiB
	// Progress is called after each batch and must not block; it may be nil.
	Progress func(Progress)
}

// Progress reports how far a copy is.
type Progress struct {
	Comparing bool // the table of the copy is read; if false, the table is copied
	Table     string
	Rows      int64 // of this table so far
	Done      bool  // there are no further rows
}

// copier is one call of Copy.
type copier struct {
	from, to Store
	options  Options
	tables   []table
	last     map[string]int64 // the last ids of the source before the copy
	fences   int64            // the sum of the fences of the source before the copy
}

// Copy copies from into to, which must be empty, and compares the row count and the
// checksum of each table. Until all are equal, storage.Whole refuses the target. If Copy
// fails after its first write, the target is useless.
//
// No node may use the stores: the error wraps ErrInUse if one does. No node has a claim
// of the copy's threads.
func Copy(ctx context.Context, from, to Store, options Options) error {
	options.Rows, options.Bytes = cmp.Or(options.Rows, 500), cmp.Or(options.Bytes, 4<<20)
	if options.Progress == nil {
		options.Progress = func(Progress) {}
	}
	c := &copier{from: from, to: to, options: options}
	if err := storage.Whole(ctx, from); err != nil {
		return fmt.Errorf("FROM: %w", err)
	}
	if err := c.idle(ctx); err != nil {
		return err
	}
	var err error
	if c.tables, err = same(ctx, from, to); err != nil {
		return err
	}
	if err := c.begin(ctx); err != nil {
		return fmt.Errorf("TO: %w", err)
	}
	if err := c.run(ctx); err != nil {
		return fmt.Errorf("%w (TO is an unfinished copy: remove it and start again with an empty target)", err)
	}
	return nil
}

// idle returns an error if a node uses one of the stores, or has used the source since
// the first call: an accepted envelope has a new id, and a claim raises a fence.
func (c *copier) idle(ctx context.Context) error {
	_, err := idle(ctx, "TO", c.to)
	fences, errFrom := idle(ctx, "FROM", c.from)
	last, errLast := c.from.LastIDs(ctx)
	switch err = cmp.Or(errFrom, err, errLast); {
	case err != nil:
	case c.last == nil:
		c.last, c.fences = last, fences
	case fences != c.fences || !maps.Equal(last, c.last):
		err = fmt.Errorf("FROM: %w", ErrInUse)
	}
	return err
}

// idle returns ErrInUse if a node uses a shared store: each node has a lease on every
// thread that it works on, and one node always has an exclusive lease. An open embedded
// store cannot be open elsewhere. Otherwise idle returns the sum of the fences.
func idle(ctx context.Context, name string, store Store) (fences int64, err error) {
	clock, shared := store.(storage.Clock)
	if !shared {
		return 0, nil
	}
	var leases int64
	err = store.ReadOne(ctx, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&leases, &fences}, `SELECT (SELECT count(*) FROM threads WHERE owner <> '' AND lease_until > $1)
			+ (SELECT count(*) FROM exclusive_leases WHERE until > $1), (SELECT CAST(coalesce(sum(fence), 0) AS BIGINT) FROM threads)`, clock.Now().UnixMilli())
		return err
	})
	if err == nil && leases > 0 {
		err = ErrInUse
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return fences, nil
}

// begin marks the target as an unfinished copy. The marker's key is constant, so
// that only one of two concurrent calls succeeds.
func (c *copier) begin(ctx context.Context) error {
	return c.to.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		if err := tx.Later(storage.ErrUnfinished, nil, `INSERT INTO unfinished_copy (id, begun_at) VALUES (1, $1) ON CONFLICT (id) DO NOTHING`,
			time.Now().UnixMilli()); err != nil {
			return err
		}
		for _, t := range c.tables {
			var one int64
			found, err := tx.Row([]any{&one}, "SELECT 1 FROM "+t.Name+" LIMIT 1")
			if err == nil && found {
				err = fmt.Errorf("%w (table %s has rows)", ErrNotEmpty, t.Name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// run copies all tables, compares them, ends the claims of the copy, and removes the marker.
func (c *copier) run(ctx context.Context) error {
	sums := map[string]checksum{}
	for _, t := range c.tables {
		sum, err := c.copy(ctx, t)
		if err != nil {
			return fmt.Errorf("copy %s: %w", t.Name, err)
		}
		sums[t.Name] = sum
	}
	if err := c.to.SkipIDs(ctx, c.last); err != nil {
		return fmt.Errorf("set the next ids: %w", err)
	}
	for _, t := range c.tables {
		sum, err := c.walk(ctx, c.to, t, Progress{Comparing: true}, func([]row) error { return nil })
		if err != nil {
			return fmt.Errorf("compare %s: %w", t.Name, err)
		}
		if want := sums[t.Name]; sum != want {
			return fmt.Errorf("%w: table %s has %d rows with checksum %x, the copy %d with %x",
				ErrDiffers, t.Name, want.rows, want.digest[:8], sum.rows, sum.digest[:8])
		}
	}
	if err := c.idle(ctx); err != nil {
		return err
	}
	return c.to.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		// As in copy, a slow target may need more time.
		if err := threads.ReleaseAll(tx); err != nil {
			return err
		}
		return tx.Later(nil, nil, `DELETE FROM unfinished_copy`)
	})
}

// copy copies one table.
func (c *copier) copy(ctx context.Context, t table) (checksum, error) {
	insert := t.insert()
	return c.walk(ctx, c.from, t, Progress{}, func(rows []row) error {
		return c.to.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
			last := len(rows) - 1
			for _, r := range rows[:last] {
				if err := tx.Later(nil, nil, insert, r...); err != nil {
					return err
				}
			}
			// All rows are there before COMMIT. If a slow target takes longer than its engine
			// allows at first, the engine can repeat the transaction with more time.
			_, err := tx.Exec(insert, rows[last]...)
			return err
		})
	})
}
