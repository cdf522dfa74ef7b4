// Package transfer copies a whole journal from one store into another, of the
// same engine or another one, and proves that the copy is like its source.
//
// A copy is made in batches, each in one transaction of the copy together with
// how far it has come, so that whatever ends it, the next call goes on there. All
// it needs of an engine is what the journal needs; the tables and their columns
// stand in one list, which a test holds against both engines' schemas.
package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"parley/ingest/journal"
)

// What Copy's errors wrap.
var (
	// ErrInUse means that a node works on one of the stores.
	ErrInUse = errors.New("a daemon works on it: stop every daemon of this store first (what one had that was killed ends within seconds)")
	// ErrForeign means that the copy's place holds something else already.
	ErrForeign = errors.New("it holds another journal: give an empty store for the copy")
	// ErrSame means that both stores are one.
	ErrSame = errors.New("both are the same store")
	// ErrDiffers means that the copy is not like its source.
	ErrDiffers = errors.New("the copy is not like its source")
)

// Options bound what Copy holds in memory. The zero value has the defaults.
type Options struct {
	Rows  int // of a batch; 0 is 500
	Bytes int // of a batch's texts and blobs, unless one row has more; 0 is 4 MiB
	// Threads is how many threads' checksums are held at a time; each costs some
	// 200 bytes, and so many threads a further walk through the tables. 0 is 200 000.
	Threads int
	// Progress hears of every batch; nil for nobody. It must not block.
	Progress func(Progress)
}

// Progress is how far a copy has come.
type Progress struct {
	Verifying bool // false: copying
	Table     string
	Rows      int64 // of this table, so far
}

// Report is what was copied, or had been already.
type Report struct {
	Tables  []Count
	Threads int64 // whose checksums are the same in both stores
	// Altered is how many texts hold a U+0000 or bytes that are not UTF-8, which
	// the copy's engine can't keep: it has U+FFFD in their place.
	Altered int64
	// Before says that the copy had been completed by an earlier call, and that
	// this one has only compared.
	Before bool
}

// Count is the number of a table's rows, the same in both stores.
type Count struct {
	Table string
	Rows  int64
}

// renumbered is an engine whose next ids do not follow from the rows.
type renumbered interface {
	// Renumber makes the next id of every table follow the highest one there is.
	Renumber(ctx context.Context) error
}

// particular is an engine that can't keep every text.
type particular interface {
	// Storable is the text as the engine keeps it.
	Storable(text string) string
}

// copier is one call of Copy.
type copier struct {
	from, to reader
	options  Options
}

// Copy makes to a copy of from, or goes on with one that an earlier call has
// begun, and then compares them: the rows of every table by number, and by a
// checksum for each thread and for each table what belongs to none. Until that is
// done, journal.Whole refuses the copy. Where the copy was complete already they
// are compared only.
//
// Both stores must be out of use: an error wraps ErrInUse where a node can be
// seen to work on one. Leases are not copied.
func Copy(ctx context.Context, from, to journal.Engine, options Options) (Report, error) {
	c := newCopier(from, to, options)
	source, err := c.source(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("the source: %w", err)
	}
	state, err := c.begin(ctx, source)
	if err != nil {
		return Report{}, fmt.Errorf("the copy: %w", err)
	}
	if !state.complete {
		if err := c.copy(ctx, state); err != nil {
			return Report{}, err
		}
	}
	report, err := c.verify(ctx)
	if err != nil {
		return Report{}, err
	}
	report.Before = state.complete
	if state.complete {
		return report, nil
	}
	if err := idle(ctx, from); err != nil { // a node may have been started since
		return Report{}, fmt.Errorf("the source: %w", err)
	}
	return report, c.complete(ctx, source)
}

func newCopier(from, to journal.Engine, o Options) *copier {
	o.Rows, o.Bytes, o.Threads = cmp.Or(o.Rows, 500), cmp.Or(o.Bytes, 4<<20), cmp.Or(o.Threads, 200_000)
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	c := &copier{options: o}
	c.to = reader{engine: to, storable: keep, rows: int64(o.Rows), bytes: int64(o.Bytes)}
	c.from = c.to
	c.from.engine, c.from.carried = from, true
	if p, ok := to.(particular); ok {
		c.from.storable = p.Storable
	}
	return c
}

// source refuses what can't be copied and returns the store's identity.
func (c *copier) source(ctx context.Context) (string, error) {
	if err := journal.Whole(ctx, c.from.engine); err != nil {
		return "", err
	}
	if err := idle(ctx, c.from.engine); err != nil {
		return "", err
	}
	return identify(ctx, c.from.engine)
}

// idle refuses a store that nodes share and one of them works on: there is always
// one that holds something, and each has a lease on every thread that it works on.
// An embedded store that is open here is open nowhere else.
func idle(ctx context.Context, engine journal.Engine) error {
	clock, shared := engine.(journal.Clock)
	if !shared {
		return nil
	}
	var used int64
	err := engine.Read(ctx, func(tx journal.Tx) error {
		_, err := tx.Row([]any{&used}, `SELECT (SELECT count(*) FROM threads WHERE owner <> '' AND lease_until > ?1)
			+ (SELECT count(*) FROM holds WHERE until > ?1)`, clock.Now().UnixMilli())
		return err
	})
	if err == nil && used > 0 {
		return ErrInUse
	}
	return err
}

// copy copies what is not copied yet.
func (c *copier) copy(ctx context.Context, s state) error {
	all := tables()
	at := slices.IndexFunc(all, func(t table) bool { return t.name == s.Table })
	if at < 0 {
		return fmt.Errorf("the copy was begun by another version, with a table %q", s.Table)
	}
	for _, t := range all[at:] {
		if t.name != s.Table {
			s.Table, s.After, s.Rows = t.name, nil, 0
		}
		if err := c.table(ctx, t, &s); err != nil {
			return fmt.Errorf("copy %s: %w", t.name, err)
		}
	}
	if engine, ok := c.to.engine.(renumbered); ok {
		if err := engine.Renumber(ctx); err != nil {
			return fmt.Errorf("set the next ids: %w", err)
		}
	}
	return nil
}

// table copies the rest of one table.
func (c *copier) table(ctx context.Context, t table, s *state) error {
	after, err := s.after(t)
	for err == nil {
		var b batch
		if b, err = c.from.next(ctx, t, after, span{}); err != nil || b.last == nil {
			break
		}
		next := s.moved(t, b)
		if err = c.put(ctx, t, b, *s, next.stored); err != nil {
			break
		}
		after, *s = b.last, next
		c.options.Progress(Progress{Table: t.name, Rows: s.Rows})
	}
	return err
}

// put writes a batch, and that it is written.
func (c *copier) put(ctx context.Context, t table, b batch, before state, next string) error {
	insert := t.insert()
	return c.to.engine.Write(ctx, func(tx journal.Tx) error {
		if err := before.replace(tx, next); err != nil {
			return err
		}
		for _, r := range b.rows {
			if err := tx.Later(nil, nil, insert, r...); err != nil {
				return err
			}
		}
		return nil
	})
}
