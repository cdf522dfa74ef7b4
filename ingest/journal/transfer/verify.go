package transfer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"parley/ingest/journal"
)

// digest is a checksum over rows in any order: engines order texts differently.
// It is the sum, without carry, of the rows' own SHA-256; no two rows are alike,
// since each holds its primary key.
type digest [sha256.Size]byte

func (d digest) with(encoded []byte) digest {
	one := sha256.Sum256(encoded)
	subtle.XORBytes(d[:], d[:], one[:])
	return d
}

// encode appends the row in a form in which any two different rows differ: the
// table, then each value with its kind and its length.
func (r row) encode(to []byte, t table) []byte {
	to = append(append(to, t.name...), 0)
	for _, value := range r {
		switch value := value.(type) {
		case nil:
			to = append(to, 'n')
		case int64:
			to = binary.BigEndian.AppendUint64(append(to, 'i'), uint64(value))
		case string:
			to = append(binary.BigEndian.AppendUint64(append(to, 't'), uint64(len(value))), value...)
		case []byte:
			to = append(binary.BigEndian.AppendUint64(append(to, 'b'), uint64(len(value))), value...)
		}
	}
	return to
}

// part is what one checksum is over: a thread with all that belongs to it, or the
// rows of a table that belong to no thread.
type part struct {
	thread int64
	table  string // where thread is 0
}

// tally is what was seen of some threads in one store.
type tally struct {
	rows    map[string]int64 // by table
	sums    map[part]digest
	altered int64
}

// tally walks through every table.
func (r reader) tally(ctx context.Context, among span, progress func(Progress)) (tally, error) {
	sum := tally{rows: map[string]int64{}, sums: map[part]digest{}}
	storable := r.storable
	r.storable = func(given string) string {
		kept := storable(given)
		if kept != given {
			sum.altered++
		}
		return kept
	}
	for _, t := range tables() {
		if err := sum.add(ctx, r, t, among, progress); err != nil {
			return tally{}, fmt.Errorf("compare %s: %w", t.name, err)
		}
	}
	return sum, nil
}

// add walks through one table.
func (s *tally) add(ctx context.Context, r reader, t table, among span, progress func(Progress)) error {
	var encoded []byte
	for after := row(nil); ; {
		b, err := r.next(ctx, t, after, among)
		if err != nil || b.last == nil {
			return err
		}
		for i, one := range b.rows {
			p := part{thread: b.threads[i]}
			if p.thread == 0 {
				p.table = t.name
			}
			encoded = one.encode(encoded[:0], t)
			s.sums[p] = s.sums[p].with(encoded)
		}
		s.rows[t.name] += int64(len(b.rows))
		after = b.last
		progress(Progress{Verifying: true, Table: t.name, Rows: s.rows[t.name]})
	}
}

// differences lists what is not the same in both.
func (s tally) differences(other tally) []part {
	var found []part
	for p, sum := range s.sums {
		if there, ok := other.sums[p]; !ok || there != sum {
			found = append(found, p)
		}
	}
	for p := range other.sums {
		if _, ok := s.sums[p]; !ok {
			found = append(found, p)
		}
	}
	return found
}

// verify compares both stores, so many threads at a time.
func (c *copier) verify(ctx context.Context) (Report, error) {
	rows := [2]map[string]int64{{}, {}}
	var report Report
	var different []part
	for among, more := (span{}), true; more; among.after = among.upTo {
		var err error
		if among.upTo, err = c.from.upTo(ctx, among.after, c.options.Threads); err != nil {
			return Report{}, err
		}
		more = among.upTo != nil
		tallies, err := c.both(ctx, among)
		if err != nil {
			return Report{}, err
		}
		for i, sum := range tallies {
			for name, n := range sum.rows {
				rows[i][name] += n
			}
		}
		report.Altered += tallies[0].altered
		different = append(different, tallies[0].differences(tallies[1])...)
	}
	for _, t := range tables() {
		report.Tables = append(report.Tables, Count{t.name, rows[0][t.name]})
		if rows[0][t.name] != rows[1][t.name] {
			different = append(different, part{table: t.name})
		}
	}
	report.Threads = rows[0]["threads"]
	if len(different) > 0 {
		return Report{}, c.differs(ctx, different)
	}
	return report, nil
}

// upTo is the last of the next n threads after one, where there are more; else nil.
func (r reader) upTo(ctx context.Context, after *int64, n int) (*int64, error) {
	low := int64(-1 << 63)
	if after != nil {
		low = *after
	}
	var last int64
	var more bool
	err := r.engine.Read(ctx, func(tx journal.Tx) (err error) {
		more, err = tx.Row([]any{&last}, `SELECT id FROM threads WHERE id > ? ORDER BY id LIMIT 1 OFFSET CAST(? AS BIGINT)`, low, int64(n-1))
		return err
	})
	if err != nil || !more {
		return nil, err
	}
	return &last, nil
}

// both walks through both stores side by side.
func (c *copier) both(ctx context.Context, among span) (sums [2]tally, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var walks sync.WaitGroup
	for i, r := range []reader{c.from, c.to} {
		progress := c.options.Progress
		if i > 0 {
			progress = func(Progress) {} // it hears of one walk
		}
		walks.Go(func() {
			var err error
			if sums[i], err = r.tally(ctx, among, progress); err != nil {
				cancel(err)
			}
		})
	}
	walks.Wait()
	return sums, context.Cause(ctx)
}

// shownParts is how many differences an error names.
const shownParts = 5

// differs is the error for stores that are not alike.
func (c *copier) differs(ctx context.Context, different []part) error {
	slices.SortFunc(different, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.table, b.table))
	})
	different = slices.Compact(different)
	var words []string
	for _, p := range different[:min(len(different), shownParts)] {
		if p.thread == 0 {
			words = append(words, "table "+p.table)
			continue
		}
		key, err := c.from.threadKey(ctx, p.thread)
		if err != nil {
			return err
		}
		words = append(words, fmt.Sprintf("thread %d (%s)", p.thread, key))
	}
	if more := len(different) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%w: %s; one of the two was changed since: give a new, empty store for the copy", ErrDiffers, strings.Join(words, ", "))
}

func (r reader) threadKey(ctx context.Context, id int64) (key string, err error) {
	err = r.engine.Read(ctx, func(tx journal.Tx) error {
		_, err := tx.Row([]any{&key}, `SELECT key FROM threads WHERE id = ?`, id)
		return err
	})
	return key, err
}
