package transfer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/ingest/journal"
	"parley/ingest/journal/transfer"
)

// full is one row for each table. What may be null is empty.
func full(s schema) []line {
	var lines []line
	for _, table := range s.tables() {
		l := line{table: table}
		for _, name := range s.columns(table) {
			column := s[table][name]
			filled := !column.Nullable || name == "thread"
			switch column.Kind {
			case "int":
				l.values = append(l.values, map[bool]int64{true: 1}[filled])
			case "text":
				l.values = append(l.values, map[bool]string{true: "text"}[filled])
			default:
				l.values = append(l.values, []byte(map[bool]string{true: "bytes"}[filled]))
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// rowOf is the condition of the table's one row.
func rowOf(table string) string {
	if table == "cursors" {
		return " WHERE channel NOT LIKE 'store/%'"
	}
	return ""
}

// stored is what the table's one row has in a column, and the least that can be
// changed of it.
func stored(t *testing.T, engine journal.Engine, table, name string, column transfer.Column) (is, changed any) {
	t.Helper()
	var number int64
	var text string
	var blob []byte
	dest := map[string]any{"int": &number, "text": &text, "bytes": &blob}[column.Kind]
	query(t, engine, "SELECT "+name+" FROM "+table+rowOf(table), func(scan func(...any) error) error { return scan(dest) })
	switch column.Kind {
	case "int":
		is, changed = number, number^1
	case "text":
		is, changed = text, text+"\x01"
	default:
		is, changed = append([]byte{}, blob...), append(blob[:max(len(blob)-1, 0)], 's'^1)
	}
	if column.Nullable {
		changed = nil
	}
	return is, changed
}

// TestOneChangedByteIsFound changes each column of each table of a complete copy,
// and makes what is empty null.
func TestOneChangedByteIsFound(t *testing.T) {
	everyWay(t, func(t *testing.T, d direction) {
		columns := schema(transfer.Known())
		from, to := d.from.open(t), d.to.open(t)
		columns.fill(t, from, full(columns))
		if _, err := transfer.Copy(t.Context(), from, to, transfer.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, table := range columns.tables() {
			names := columns.columns(table)
			if !d.quick() {
				names = names[:1]
			}
			place := "thread 1 (text)"
			if slices.Contains([]string{"workspaces", "channels", "aside", "paces", "cursors", "blobs"}, table) {
				place = "table " + table
			}
			for _, name := range names {
				is, changed := stored(t, to, table, name, columns[table][name])
				exec(t, to, "UPDATE "+table+" SET "+name+" = ?"+rowOf(table), changed)
				_, err := transfer.Copy(t.Context(), from, to, transfer.Options{})
				if !errors.Is(err, transfer.ErrDiffers) || !strings.Contains(err.Error(), place) {
					t.Errorf("%s.%s was changed from %v to %v: %v", table, name, is, changed, err)
				}
				exec(t, to, "UPDATE "+table+" SET "+name+" = ?"+rowOf(table), is)
			}
		}
		report, err := transfer.Copy(t.Context(), from, to, transfer.Options{})
		if err != nil || !report.Before || report.Threads != 1 {
			t.Errorf("nothing is changed any more: %+v, %v", report, err)
		}
	})
}

// TestAMissingRowIsFound, also one that belongs to no thread, and one too many.
func TestAMissingRowIsFound(t *testing.T) {
	t.Parallel()
	columns := schema(transfer.Known())
	for _, table := range columns.tables() {
		from, to := embedded.open(t), embedded.open(t)
		columns.fill(t, from, full(columns))
		if _, err := transfer.Copy(t.Context(), from, to, small); err != nil {
			t.Fatal(err)
		}
		lost := to
		if table < "m" {
			lost = from
		}
		exec(t, lost, "DELETE FROM "+table+rowOf(table))
		if _, err := transfer.Copy(t.Context(), from, to, small); !errors.Is(err, transfer.ErrDiffers) {
			t.Errorf("a row of %s is in one store alone: %v", table, err)
		}
	}
}

// TestAnUnfinishedCopyThatDiffersStaysSo holds that nobody may work on a copy whose
// source has changed since it was begun.
func TestAnUnfinishedCopyThatDiffersStaysSo(t *testing.T) {
	t.Parallel()
	from, to := example(t, embedded), embedded.open(t)
	broken := &cut{Engine: to, left: 8, fail: failures["before"]}
	if _, err := transfer.Copy(t.Context(), from, broken, small); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	exec(t, from, "UPDATE workspaces SET self = '{}'")
	if _, err := transfer.Copy(t.Context(), from, to, small); !errors.Is(err, transfer.ErrDiffers) {
		t.Errorf("the source was changed: %v", err)
	}
	if err := journal.Whole(t.Context(), to); !errors.Is(err, journal.ErrUnfinished) {
		t.Errorf("a daemon may work on it: %v", err)
	}
	if _, err := transfer.Copy(t.Context(), to, embedded.open(t), small); !errors.Is(err, journal.ErrUnfinished) {
		t.Errorf("it may be copied further: %v", err)
	}
}

// TestAForeignStoreIsLeftAlone, whatever table it has something in, and also a
// copy of another store.
func TestAForeignStoreIsLeftAlone(t *testing.T) {
	t.Parallel()
	columns := schema(transfer.Known())
	from, to := example(t, embedded), embedded.open(t)
	for _, l := range full(columns) {
		columns.empty(t, to)
		columns.fill(t, to, []line{l})
		before := columns.dump(t, to, false)
		if _, err := transfer.Copy(t.Context(), from, to, small); !errors.Is(err, transfer.ErrForeign) {
			t.Errorf("a store with a row in %s: %v", l.table, err)
		}
		if after := columns.dump(t, to, false); !slices.Equal(before, after) {
			t.Errorf("the store was changed: %q", after)
		}
	}
	for _, left := range []int{4, 1000} {
		columns.empty(t, to)
		_, _ = transfer.Copy(t.Context(), example(t, embedded), &cut{Engine: to, left: left, fail: failures["before"]}, small)
		if _, err := transfer.Copy(t.Context(), from, to, small); !errors.Is(err, transfer.ErrForeign) {
			t.Errorf("another store's copy: %v", err)
		}
	}
}

// TestTheSameStoreTwice is no copy.
func TestTheSameStoreTwice(t *testing.T) {
	t.Parallel()
	store := example(t, embedded)
	if _, err := transfer.Copy(t.Context(), store, store, small); !errors.Is(err, transfer.ErrSame) {
		t.Errorf("a store onto itself: %v", err)
	}
}

// clocked is an engine that nodes share, at a time.
type clocked struct {
	journal.Engine
	now int64
}

func (c clocked) Now() time.Time { return time.UnixMilli(c.now) }

// TestAStoreInUseIsRefused on either side, until the leases have ended.
func TestAStoreInUseIsRefused(t *testing.T) {
	t.Parallel()
	columns := schema(transfer.Known())
	for _, use := range []string{
		"INSERT INTO holds (name, owner, until) VALUES ('retention', 'n', 1000)",
		"UPDATE threads SET owner = 'n', lease_until = 1000",
	} {
		from, to := embedded.open(t), embedded.open(t)
		columns.fill(t, from, full(columns))
		exec(t, from, use)
		if _, err := transfer.Copy(t.Context(), clocked{from, 999}, to, small); !errors.Is(err, transfer.ErrInUse) {
			t.Errorf("%s: %v", use, err)
		}
		if strings.HasPrefix(use, "INSERT") {
			exec(t, to, use)
			if _, err := transfer.Copy(t.Context(), from, clocked{to, 999}, small); !errors.Is(err, transfer.ErrInUse) {
				t.Errorf("%s in the copy's place: %v", use, err)
			}
		}
		if _, err := transfer.Copy(t.Context(), clocked{from, 1000}, clocked{to, 1000}, small); err != nil {
			t.Errorf("it has ended: %v", err)
		}
	}
}

// TestAStoreThatComesIntoUseIsRefused at the end, where a node was started while
// the copy was made.
func TestAStoreThatComesIntoUseIsRefused(t *testing.T) {
	t.Parallel()
	from, to := example(t, embedded), embedded.open(t)
	exec(t, from, "UPDATE threads SET owner = ''")
	options := small
	begun := false
	options.Progress = func(p transfer.Progress) {
		if p.Verifying && !begun {
			begun = true
			exec(t, from, "INSERT INTO holds (name, owner, until) VALUES ('retention', 'n', 1000)")
		}
	}
	if _, err := transfer.Copy(t.Context(), clocked{from, 1}, to, options); !errors.Is(err, transfer.ErrInUse) {
		t.Errorf("a node was started: %v", err)
	}
	if err := journal.Whole(t.Context(), to); !errors.Is(err, journal.ErrUnfinished) {
		t.Errorf("a daemon may work on it: %v", err)
	}
}

// TestTwoCopiersDoNotMix lets one begin while the other is at work.
func TestTwoCopiersDoNotMix(t *testing.T) {
	t.Parallel()
	columns := schema(transfer.Known())
	from, to := example(t, embedded), embedded.open(t)
	want := columns.dump(t, from, true)
	options := small
	options.Progress = func(transfer.Progress) {
		options.Progress = nil
		if _, err := transfer.Copy(t.Context(), from, to, small); err != nil {
			t.Errorf("the second: %v", err)
		}
	}
	first := options
	first.Progress = func(p transfer.Progress) {
		if options.Progress != nil {
			options.Progress(p)
		}
	}
	if _, err := transfer.Copy(t.Context(), from, to, first); err == nil {
		t.Error("the first did not notice the second")
	}
	if got := columns.dump(t, to, false); !slices.Equal(want, got) {
		t.Errorf("the copy holds %d rows, want %d", len(got), len(want))
	}
}

// narrow is an engine that can't keep every text.
type narrow struct{ journal.Engine }

func (narrow) Storable(text string) string { return strings.ReplaceAll(text, "\x00", "\uFFFD") }

// TestWhatCannotBeKeptIsCounted and does not keep a copy from being complete.
func TestWhatCannotBeKeptIsCounted(t *testing.T) {
	t.Parallel()
	from, to := embedded.open(t), embedded.open(t)
	exec(t, from, "INSERT INTO cursors (workspace, channel, position) VALUES ('w', ?, 'p'), (?, 'c', 'p'), ('v', 'c', 'p')", "a\x00b", "u\x00")
	report, err := transfer.Copy(t.Context(), from, narrow{to}, transfer.Options{Rows: 1})
	if err != nil || report.Altered != 2 {
		t.Errorf("Copy = %+v, %v", report, err)
	}
	if report, err := transfer.Copy(t.Context(), from, to, small); !errors.Is(err, transfer.ErrDiffers) {
		t.Errorf("a store that keeps every text has others: %+v, %v", report, err)
	}
}

// TestABatchIsBoundedByItsBytes reads no more at a time than it may, or one row.
func TestABatchIsBoundedByItsBytes(t *testing.T) {
	t.Parallel()
	from, to := embedded.open(t), embedded.open(t)
	for part, size := range []int{40, 50, 20, 500, 10, 10, 10} {
		exec(t, from, "INSERT INTO blobs (path, part, bytes) VALUES ('p', ?, ?)", int64(part), make([]byte, size))
	}
	var seen []int64
	_, err := transfer.Copy(t.Context(), from, to, transfer.Options{Bytes: 100, Progress: func(p transfer.Progress) {
		if !p.Verifying && p.Table == "blobs" {
			seen = append(seen, p.Rows)
		}
	}})
	if want := []int64{2, 3, 4, 7}; err != nil || !slices.Equal(seen, want) {
		t.Errorf("batches end at %v, want %v: %v", seen, want, err)
	}
}
