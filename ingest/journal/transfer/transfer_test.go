package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	steps "parley/ingest/journal/storage/schema"
	"parley/ingest/journal/transfer"
)

// small makes batches of a few rows.
var small = transfer.Options{Rows: 3, Bytes: 40}

// TestBothEnginesHaveTheSameTables proves that they can be copied: each has a primary key, and columns of known types.
func TestBothEnginesHaveTheSameTables(t *testing.T) {
	t.Parallel()
	tables := copiedOf(t, embedded(t))
	if diff := cmp.Diff(tables, copiedOf(t, shared(t))); diff != "" {
		t.Errorf("the tables of the engines (-SQLite +PostgreSQL):\n%s", diff)
	}
	for _, table := range tables {
		if table.Key == 0 {
			t.Errorf("%s has no primary key", table.Name)
		}
		for _, c := range table.Columns {
			if !slices.Contains([]string{"INTEGER", "TEXT", "BLOB"}, c.Type) {
				t.Errorf("%s.%s has the type %s", table.Name, c.Name, c.Type)
			}
		}
	}
}

// TestEachTableIsCopied proves this for all tables that an engine has, except those that are left out.
func TestEachTableIsCopied(t *testing.T) {
	t.Parallel()
	for engine, store := range map[string]transfer.Store{"SQLite": embedded(t), "PostgreSQL": shared(t)} {
		expected := append(transfer.Left(), "schema_migrations")
		for _, table := range copiedOf(t, store) {
			expected = append(expected, table.Name)
		}
		var has []string
		err := store.Read(t.Context(), func(tx storage.Tx) error {
			tables, err := tx.Tables()
			for _, table := range tables {
				if !strings.HasPrefix(table.Name, "sqlite_") && !strings.HasPrefix(table.Name, "search_words_") { // made by SQLite
					has = append(has, table.Name)
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		slices.Sort(expected)
		slices.Sort(has)
		if diff := cmp.Diff(expected, has); diff != "" {
			t.Errorf("tables of %s (-copied or left out +there):\n%s", engine, diff)
		}
	}
}

// changed opens a store whose schema has one more step.
func changed(t *testing.T, step string) transfer.Store {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(journaltest.Dir(t), "parley.db"), sqlite.Options{Steps: append(sqlite.Steps(),
		steps.Step{Name: fmt.Sprintf("%04d_more.sql", len(sqlite.Steps())+1), Text: step})})
	return opened(t, engine, err)
}

// TestAStoreWithOtherColumnsIsRefused proves that no column is lost, and that the target stays empty.
func TestAStoreWithOtherColumnsIsRefused(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"ALTER TABLE runs ADD COLUMN more TEXT", "DROP TABLE runs"} {
		other := changed(t, step)
		for _, stores := range [][]transfer.Store{{other, embedded(t)}, {embedded(t), other}} {
			if err := transfer.Copy(t.Context(), stores[0], stores[1], small); err == nil || !strings.Contains(err.Error(), "the table runs") {
				t.Errorf("%s: %v", step, err)
			}
			if err := storage.Whole(t.Context(), stores[1]); err != nil {
				t.Errorf("%s: the target has changed: %v", step, err)
			}
		}
	}
}

// TestRowsOfAnOlderStoreAreCounted counts in a store that lacks a table.
func TestRowsOfAnOlderStoreAreCounted(t *testing.T) {
	t.Parallel()
	counts := func(store transfer.Store) (rows map[string]int64) {
		t.Helper()
		if err := store.Read(t.Context(), func(tx storage.Tx) (err error) { rows, err = transfer.Count(tx); return err }); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	want := counts(embedded(t))
	delete(want, "runs")
	if diff := cmp.Diff(want, counts(changed(t, "DROP TABLE runs"))); diff != "" {
		t.Error(diff)
	}
}

// TestTablesOfOthersAreNotCopied copies from a database in which another program has a table.
func TestTablesOfOthersAreNotCopied(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	engine, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	from, to := opened(t, engine, err), embedded(t)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(t.Context()) }()
	if _, err := db.Exec(t.Context(), "CREATE TABLE others (a REAL); INSERT INTO others VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	tables := tablesOf(t, to)
	tables.fill(t, from, tables.full())
	copied(t, tables, from, to)
}

// TestACopyEqualsItsSource proves this for arbitrary rows.
func TestACopyEqualsItsSource(t *testing.T) {
	t.Parallel()
	from, to := embedded(t), embedded(t)
	tables := tablesOf(t, from)
	rapid.Check(t, func(t *rapid.T) {
		tables.fill(t, from, tables.lines().Draw(t, "rows"))
		tables.fill(t, to, nil)
		copied(t, tables, from, to)
	})
}

// TestACopyOfACopyEqualsItsSource copies from SQLite through two PostgreSQL stores and
// back.
func TestACopyOfACopyEqualsItsSource(t *testing.T) {
	t.Parallel()
	stores := []transfer.Store{embedded(t), shared(t), shared(t), embedded(t)}
	tables := tablesOf(t, stores[0])
	tables.fill(t, stores[0], tables.lines().Example(1))
	want := tables.dump(t, stores[0], true)
	for i, to := range stores[1:] {
		copied(t, tables, stores[i], to)
	}
	if diff := cmp.Diff(want, tables.dump(t, stores[3], false)); diff != "" {
		t.Errorf("the last copy (-want +got):\n%s", diff)
	}
}

// copied copies a store and compares the two.
func copied(t tester, tables schema, from, to transfer.Store) {
	t.Helper()
	want := tables.dump(t, from, true)
	if err := transfer.Copy(t.Context(), from, to, transfer.Options{Rows: 3, Bytes: 1000}); err != nil {
		t.Fatalf("copy: %v", err)
	}
	if diff := cmp.Diff(want, tables.dump(t, to, false)); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	if err := storage.Whole(t.Context(), to); err != nil {
		t.Errorf("a daemon refuses the copy: %v", err)
	}
}

// TestIDsAreNotUsedAgain proves this for copies, even if the row with the highest id is
// deleted.
func TestIDsAreNotUsedAgain(t *testing.T) {
	t.Parallel()
	stores := []transfer.Store{embedded(t), shared(t), embedded(t), embedded(t)}
	tables := tablesOf(t, stores[0])
	numbered := map[string]string{"threads": "id", "envelopes": "id", "messages": "row", "attachments": "id", "deliveries": "id"}
	highest := map[string]int64{}
	insert := func(store transfer.Store) {
		t.Helper()
		for _, l := range tables.full() {
			id := numbered[l.table]
			if id == "" {
				continue
			}
			exec(t, store, "DELETE FROM "+l.table)
			if next := inserted(t, store, tables, l, id); next <= highest[l.table] {
				t.Errorf("%s has the id %d after %d", l.table, next, highest[l.table])
			} else {
				highest[l.table] = next
			}
		}
	}
	for i, from := range stores[:3] {
		insert(from)
		insert(from)
		for table := range numbered {
			exec(t, from, "DELETE FROM "+table)
		}
		if err := transfer.Copy(t.Context(), from, stores[i+1], small); err != nil {
			t.Fatal(err)
		}
	}
	insert(stores[3])
}

// inserted writes a row without its id and returns the id that it gets.
func inserted(t *testing.T, store transfer.Store, tables schema, l line, id string) (next int64) {
	t.Helper()
	at := slices.IndexFunc(tables[l.table], func(c storage.Column) bool { return c.Name == id })
	columns := slices.Delete(slices.Clone(tables[l.table]), at, at+1)
	values := slices.Delete(slices.Clone(l.values), at, at+1)
	err := store.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&next}, insert(l.table, columns)+" RETURNING "+id, values...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// cut is a store whose nth write fails, before or after the write itself.
type cut struct {
	transfer.Store
	left  int
	after bool
}

var errCut = errors.New("cut short")

func (c *cut) Write(ctx context.Context, options storage.WriteOptions, fn func(storage.Tx) error) error {
	if c.left--; c.left != 0 {
		return c.Store.Write(ctx, options, fn)
	}
	if c.after {
		return errors.Join(c.Store.Write(ctx, options, fn), errCut)
	}
	return errCut
}

// TestAnInterruptedCopyIsRefused proves that a copy that ended at any write is refused:
// by daemons, by a second copy into it, and by a copy out of it.
func TestAnInterruptedCopyIsRefused(t *testing.T) {
	t.Parallel()
	from, to, other := embedded(t), embedded(t), embedded(t)
	tables := tablesOf(t, from)
	tables.fill(t, from, tables.full())
	last := 1 + len(tables) + 1 + 1 // the marker, the tables, the ids, the marker again
	for n := 1; n <= last; n++ {
		tables.fill(t, to, nil)
		broken := &cut{Store: to, left: n, after: n < last}
		if err := transfer.Copy(t.Context(), from, &skipless{broken}, transfer.Options{}); !errors.Is(err, errCut) {
			t.Fatalf("write %d: %v", n, err)
		}
		if err := storage.Whole(t.Context(), to); !errors.Is(err, storage.ErrUnfinished) {
			t.Errorf("a daemon accepts a copy that ended at write %d: %v", n, err)
		}
		before := tables.dump(t, to, false)
		if err := transfer.Copy(t.Context(), from, to, small); !errors.Is(err, storage.ErrUnfinished) {
			t.Errorf("a copy that ended at write %d can be written again: %v", n, err)
		}
		if !slices.Equal(before, tables.dump(t, to, false)) {
			t.Errorf("the second call wrote to a copy that ended at write %d", n)
		}
		if err := transfer.Copy(t.Context(), to, other, small); !errors.Is(err, storage.ErrUnfinished) {
			t.Errorf("a copy that ended at write %d can be copied: %v", n, err)
		}
	}
}

// skipless makes SkipIDs one of the writes that can fail.
type skipless struct{ *cut }

func (s skipless) SkipIDs(ctx context.Context, _ map[string]int64) error {
	return s.Write(ctx, storage.WriteOptions{}, func(storage.Tx) error { return nil })
}

// TestACopyThatFailsAtOnceLeavesAnEmptyStore proves that the store can be
// used.
func TestACopyThatFailsAtOnceLeavesAnEmptyStore(t *testing.T) {
	t.Parallel()
	from, to := embedded(t), embedded(t)
	if err := transfer.Copy(t.Context(), from, &cut{Store: to, left: 1}, small); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	if err := transfer.Copy(t.Context(), from, to, small); err != nil {
		t.Error(err)
	}
}

// TestADifferingCopyIsRefused proves this for a change in each table.
func TestADifferingCopyIsRefused(t *testing.T) {
	t.Parallel()
	from, to := embedded(t), embedded(t)
	tables, order := tablesOf(t, from), copiedOf(t, from)
	last := order[len(order)-1].Name
	for _, table := range tables.tables() {
		value := tables[table][slices.IndexFunc(tables[table], func(c storage.Column) bool { return !c.Null })]
		for _, change := range []string{
			"DELETE FROM " + table,
			"UPDATE " + table + " SET " + value.Name + " = CAST(" + value.Name + " || '2' AS " +
				value.Type + ")",
		} {
			tables.fill(t, from, tables.full())
			tables.fill(t, to, nil)
			options, changed := transfer.Options{}, false
			options.Progress = func(p transfer.Progress) {
				if p.Table == last && p.Done && !changed {
					exec(t, to, change)
					changed = true
				}
			}
			err := transfer.Copy(t.Context(), from, to, options)
			if !errors.Is(err, transfer.ErrDiffers) || !strings.Contains(err.Error(), table) && table != "messages" { // a change of a message also changes its thread
				t.Errorf("after %s: %v", change, err)
			}
			if err := storage.Whole(t.Context(), to); !errors.Is(err, storage.ErrUnfinished) {
				t.Errorf("after %s, a daemon accepts the copy: %v", change, err)
			}
		}
	}
}

// TestChecksum proves that it differs for different rows, and not for another order.
func TestChecksum(t *testing.T) {
	t.Parallel()
	rows := [][]any{
		{"a", "b"}, {"ab", ""}, {"", "ab"}, {"a", nil}, {"a", ""}, {nil, "a"}, {"a", []byte{}}, {[]byte("a"), ""},
		{int64(1), "a"}, {int64(-1), "a"}, {"\x01", "a"}, {int64(256), "a"}, {"a\x00", "b"}, {"a", "\x00b"},
	}
	for i, one := range rows {
		for _, other := range rows[:i] {
			if transfer.Checksum(one) == transfer.Checksum(other) {
				t.Errorf("%#v and %#v have the same checksum", one, other)
			}
			if transfer.Checksum(one, other) != transfer.Checksum(other, one) {
				t.Errorf("the checksum of %#v and %#v depends on their order", one, other)
			}
		}
	}
	if transfer.Checksum() == transfer.Checksum(rows[0], rows[0]) {
		t.Error("the checksum ignores the number of rows")
	}
}

// TestATargetWithRowsIsRefused proves that the target does not change either.
func TestATargetWithRowsIsRefused(t *testing.T) {
	t.Parallel()
	from, to := embedded(t), embedded(t)
	tables := tablesOf(t, from)
	for _, l := range tables.full() {
		tables.fill(t, to, []line{l})
		before := tables.dump(t, to, false)
		if err := transfer.Copy(t.Context(), from, to, small); !errors.Is(err, transfer.ErrNotEmpty) {
			t.Errorf("a store with a row in %s: %v", l.table, err)
		}
		if !slices.Equal(before, tables.dump(t, to, false)) {
			t.Errorf("a store with a row in %s has changed", l.table)
		}
		if err := storage.Whole(t.Context(), to); err != nil {
			t.Errorf("a store with a row in %s: %v", l.table, err)
		}
	}
}

// TestTwoCopiesDoNotMix starts a second copy during the first.
func TestTwoCopiesDoNotMix(t *testing.T) {
	t.Parallel()
	from, to := embedded(t), embedded(t)
	tables := tablesOf(t, from)
	tables.fill(t, from, tables.full())
	want := tables.dump(t, from, true)
	options := small
	options.Progress = func(transfer.Progress) {
		if err := transfer.Copy(t.Context(), from, to, small); !errors.Is(err, storage.ErrUnfinished) {
			t.Errorf("the second copy: %v", err)
		}
	}
	if err := transfer.Copy(t.Context(), from, to, options); err != nil {
		t.Errorf("the first copy: %v", err)
	}
	if diff := cmp.Diff(want, tables.dump(t, to, false)); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
}

// clocked is a store whose clock shows a fixed time.
type clocked struct {
	transfer.Store
	now int64
}

func (c clocked) Now() time.Time { return time.UnixMilli(c.now) }

const exclusive = "INSERT INTO exclusive_leases (name, owner, until) VALUES ('retention', 'n', 1000)"

// TestAStoreInUseIsRefused proves that it is refused until the lease has ended.
func TestAStoreInUseIsRefused(t *testing.T) {
	t.Parallel()
	stores := []transfer.Store{embedded(t), embedded(t)}
	tables := tablesOf(t, stores[0])
	for _, c := range []struct {
		used  int
		lease string
	}{{0, exclusive}, {0, "UPDATE threads SET owner = 'n', lease_until = 1000"}, {1, exclusive}} {
		tables.fill(t, stores[0], tables.full())
		tables.fill(t, stores[1], nil)
		exec(t, stores[c.used], c.lease)
		if err := transfer.Copy(t.Context(), clocked{stores[0], 999}, clocked{stores[1], 999}, small); !errors.Is(err, transfer.ErrInUse) {
			t.Errorf("store %d after %s: %v", c.used, c.lease, err)
		}
		if err := transfer.Copy(t.Context(), clocked{stores[0], 1000}, clocked{stores[1], 1000}, small); err != nil {
			t.Errorf("store %d after %s has ended: %v", c.used, c.lease, err)
		}
	}
}

// TestAStoreInUseDuringTheCopyIsRefused starts a node during the copy.
func TestAStoreInUseDuringTheCopyIsRefused(t *testing.T) {
	t.Parallel()
	for _, used := range []int{0, 1} {
		stores := []transfer.Store{embedded(t), embedded(t)}
		options, started := small, false
		options.Progress = func(p transfer.Progress) {
			if !started {
				started = true
				exec(t, stores[used], exclusive)
			}
		}
		if err := transfer.Copy(t.Context(), clocked{stores[0], 1}, clocked{stores[1], 1}, options); !errors.Is(err, transfer.ErrInUse) {
			t.Errorf("after the start of a node: %v", err)
		}
		if err := storage.Whole(t.Context(), stores[1]); !errors.Is(err, storage.ErrUnfinished) {
			t.Errorf("a daemon accepts the copy: %v", err)
		}
	}
}

// TestAStoreUsedDuringTheCopyIsRefused starts a node during the copy and stops it before
// the end.
func TestAStoreUsedDuringTheCopyIsRefused(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(from transfer.Store, tables schema, envelope line){
		"an accept": func(from transfer.Store, tables schema, envelope line) { inserted(t, from, tables, envelope, "id") },
		"a claim": func(from transfer.Store, _ schema, _ line) {
			exec(t, from, "UPDATE threads SET fence = fence + 1, next_seq = 7")
		},
	} {
		from, to := shared(t), embedded(t)
		tables := tablesOf(t, from)
		full := tables.full()
		at := slices.IndexFunc(full, func(l line) bool { return l.table == "envelopes" })
		tables.fill(t, from, slices.Delete(slices.Clone(full), at, at+1))
		options, worked := small, false
		options.Progress = func(p transfer.Progress) {
			if p.Table == "messages" && !worked {
				worked = true
				work(from, tables, full[at])
			}
		}
		if err := transfer.Copy(t.Context(), from, to, options); !errors.Is(err, transfer.ErrInUse) || !strings.Contains(err.Error(), "FROM") {
			t.Errorf("after %s: %v", name, err)
		}
		if err := storage.Whole(t.Context(), to); !errors.Is(err, storage.ErrUnfinished) {
			t.Errorf("after %s, a daemon accepts the copy: %v", name, err)
		}
	}
}

// TestABatchIsBoundedByItsBytes proves that only a larger row exceeds the bound.
func TestABatchIsBoundedByItsBytes(t *testing.T) {
	t.Parallel()
	from, to := embedded(t), embedded(t)
	for part, size := range []int{40, 50, 20, 500, 10, 10, 10} {
		exec(t, from, "INSERT INTO blobs (path, part, bytes) VALUES ('p', $1, $2)", int64(part), make([]byte, size))
	}
	var seen []int64
	err := transfer.Copy(t.Context(), from, to, transfer.Options{Bytes: 100, Progress: func(p transfer.Progress) {
		if !p.Comparing && p.Table == "blobs" && !p.Done {
			seen = append(seen, p.Rows)
		}
	}})
	if want := []int64{2, 3, 4, 7}; err != nil || !slices.Equal(seen, want) {
		t.Errorf("batches end at %v, want %v: %v", seen, want, err)
	}
}
