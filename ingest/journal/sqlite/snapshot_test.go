package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

func TestAReadSeesOneSnapshot(t *testing.T) {
	e := open(t, file(t))
	write(t, e, insert("before"))
	count := func(tx storage.Tx) (n int64) {
		if _, err := tx.Row([]any{&n}, "SELECT count(*) FROM facts"); err != nil {
			t.Error(err)
		}
		return n
	}
	if err := e.Read(t.Context(), func(tx storage.Tx) error {
		first := count(tx)
		write(t, e, insert("meanwhile"))
		if second := count(tx); first != 1 || second != 1 {
			t.Errorf("counted %d, then %d", first, second)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"before", "meanwhile"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
}

func TestAWriteSeesItsOwnChanges(t *testing.T) {
	e := open(t, file(t))
	write(t, e, func(tx storage.Tx) error {
		if err := insert("mine")(tx); err != nil {
			return err
		}
		var name string
		found, err := tx.Row([]any{&name}, "SELECT name FROM facts")
		if !found || name != "mine" {
			t.Errorf("found %v, %q", found, name)
		}
		return err
	})
}

// TestAReaderThatCannotBeOpenedIsUnavailable proves that the caller repeats the read.
func TestAReaderThatCannotBeOpenedIsUnavailable(t *testing.T) {
	path := file(t)
	e := open(t, path)
	write(t, e, insert("stored"))
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Dir(path)
	move(dir, dir+".moved")
	for name, read := range map[string]func(context.Context, func(storage.Tx) error) error{"Read": e.Read, "ReadOne": e.ReadOne} {
		if err := read(t.Context(), func(storage.Tx) error { return nil }); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("%s without the file: %v", name, err)
		}
	}
	move(dir+".moved", dir)
	if diff := cmp.Diff([]string{"stored"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
}

func TestAReadCannotWrite(t *testing.T) {
	e := open(t, file(t))
	if err := e.Read(t.Context(), insert("smuggled")); err == nil {
		t.Error("no error")
	}
	if got := names(t, e); len(got) != 0 {
		t.Errorf("stored %v", got)
	}
}

func TestValuesSurviveARoundTrip(t *testing.T) {
	e := open(t, file(t))
	const text = "ab – \U0001F600"
	write(t, e, func(tx storage.Tx) error {
		_, err := tx.Exec("INSERT INTO facts (id, name, body) VALUES (?, ?, ?), (?, ?, ?)",
			int64(1<<62), text, []byte{0, 255}, int64(-7), "", nil)
		return err
	})
	type fact struct {
		ID   int64
		Name string
		Body []byte
		Has  bool
	}
	var got []fact
	if err := e.Read(t.Context(), func(tx storage.Tx) error {
		return tx.Rows(func(scan func(...any) error) error {
			var f fact
			defer func() { got = append(got, f) }()
			return scan(&f.ID, &f.Name, &f.Body, &f.Has)
		}, "SELECT id, name, body, body IS NOT NULL FROM facts ORDER BY id DESC")
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]fact{{1 << 62, text, []byte{0, 255}, true}, {ID: -7}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTimesAreMilliseconds(t *testing.T) {
	e := open(t, file(t))
	var at time.Time
	never, null := time.UnixMilli(1), time.UnixMilli(1)
	if err := e.Read(t.Context(), func(tx storage.Tx) error {
		_, err := tx.Row([]any{&at, &never, &null}, "SELECT 1500, 0, NULL")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]time.Time{time.UnixMilli(1500).UTC(), {}, {}}, []time.Time{at, never, null}); diff != "" {
		t.Error(diff)
	}
}

func TestRowsEndsAtTheFirstError(t *testing.T) {
	e := open(t, file(t))
	for _, name := range []string{"a", "b"} {
		write(t, e, insert(name))
	}
	enough, calls := errors.New("enough"), 0
	err := e.Read(t.Context(), func(tx storage.Tx) error {
		return tx.Rows(func(scan func(...any) error) error {
			calls++
			if _, err := tx.Row(nil, "SELECT 1"); err == nil {
				t.Error("a query ran inside another")
			}
			if err := scan(new(int64)); err == nil {
				t.Error("a text was scanned into an int64")
			}
			if err := scan(new(string), new(string)); err == nil {
				t.Error("one column was scanned into two variables")
			}
			return enough
		}, "SELECT name FROM facts")
	})
	if err != enough || calls != 1 {
		t.Errorf("%v after %d rows", err, calls)
	}
}

func TestAReadersWaitEndsWithItsContext(t *testing.T) {
	e := open(t, file(t))
	var nest func(readers int) error
	nest = func(readers int) error {
		return e.Read(t.Context(), func(storage.Tx) error {
			if readers > 1 {
				return nest(readers - 1)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			err := e.Read(ctx, func(storage.Tx) error { return errors.New("the bound did not hold") })
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with every connection in use: error %v", err)
			}
			return nil
		})
	}
	if err := nest(6); err != nil {
		t.Error(err)
	}
}

// TestSnapshot has the rows of before it, and no row of later; the journal takes writes meanwhile, and
// only one snapshot is made at a time.
func TestSnapshot(t *testing.T) {
	path := file(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".snapshot", []byte("of a killed process"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := open(t, path)
	if _, err := os.Stat(path + ".snapshot"); err == nil {
		t.Error("the snapshot of a killed process stays")
	}
	write(t, e, insert("before"))
	var snapshot string
	err := e.Snapshot(t.Context(), func(at string) error {
		snapshot = at
		write(t, e, insert("later"))
		if err := e.Snapshot(t.Context(), func(string) error { return nil }); !errors.Is(err, sqlite.ErrSnapshot) {
			t.Errorf("a second snapshot: %v", err)
		}
		if info, err := os.Stat(at); err != nil || info.Mode() != 0o600 {
			t.Errorf("the file has the mode %v (%v)", info.Mode(), err)
		}
		return sqlite.View(t.Context(), at, func(tx storage.Tx) error {
			var n int64
			_, err := tx.Row([]any{&n}, "SELECT count(*) FROM facts WHERE name = 'before' OR name = 'later'")
			if n != 1 {
				t.Errorf("the snapshot has %d rows", n)
			}
			return errors.Join(err, sqlite.Intact(tx))
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(snapshot); err == nil {
		t.Error("the snapshot stays")
	}
}

// TestPlace refuses a place that has a database, a log of one, or an open one. An empty log, as a command leaves it that only reads, is none.
func TestPlace(t *testing.T) {
	never := func(*os.File) error { t.Error("a draft is filled"); return nil }
	used := file(t)
	open(t, used)
	if err := sqlite.Place(used, never); !errors.Is(err, sqlite.ErrExists) {
		t.Errorf("beside a database: %v", err)
	}
	logged := file(t)
	if err := errors.Join(os.MkdirAll(filepath.Dir(logged), 0o700), os.WriteFile(logged+"-wal", []byte("frames"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Place(logged, never); !errors.Is(err, sqlite.ErrExists) {
		t.Errorf("beside a log: %v", err)
	}
	path, failed := file(t), errors.New("no room")
	if err := sqlite.Place(path, func(draft *os.File) error {
		if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !errors.Is(err, storage.ErrLocked) {
			t.Errorf("open meanwhile: %v", err)
		}
		return failed
	}); !errors.Is(err, failed) {
		t.Error(err)
	}
	if err := os.WriteFile(path+"-wal", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.Place(path, func(draft *os.File) error { _, err := draft.WriteString("new"); return err }); err != nil {
		t.Error(err)
	}
	if raw, err := os.ReadFile(path); string(raw) != "new" || err != nil {
		t.Errorf("%q, %v", raw, err)
	}
}
