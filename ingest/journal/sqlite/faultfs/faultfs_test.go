package faultfs_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"

	sqlite "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"parley/ingest/journal/sqlite/faultfs"
)

// open opens a new database through a new FS, with one table and without a log, so that
// every commit writes and syncs the file itself.
func open(t *testing.T) (*faultfs.FS, *sql.DB, string) {
	t.Helper()
	fs, err := faultfs.New()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := sql.Open("sqlite", "file:"+path+"?vfs="+fs.Name+"&_pragma=synchronous(FULL)")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), fs.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := add(db, "CREATE TABLE t (n INTEGER)"); err != nil {
		t.Fatal(err)
	}
	return fs, db, path
}

func add(db *sql.DB, statement string) error {
	_, err := db.Exec(statement)
	return err
}

func TestAFaultOccursOnce(t *testing.T) {
	fs, db, _ := open(t)
	fs.Inject(faultfs.Fault{Op: faultfs.Sync, Nth: 1, Code: lib.SQLITE_IOERR_FSYNC})
	err := add(db, "INSERT INTO t VALUES (1)")
	var failure *sqlite.Error
	if !errors.As(err, &failure) || failure.Code() != lib.SQLITE_IOERR_FSYNC {
		t.Errorf("got %v", err)
	}
	if err := add(db, "INSERT INTO t VALUES (2)"); err != nil {
		t.Errorf("the second insert: %v", err)
	}
	if !fs.Heal() {
		t.Error("Heal reports that the fault did not occur")
	}
}

func TestALastingFaultEndsWhenHealed(t *testing.T) {
	fs, db, _ := open(t)
	fs.Inject(faultfs.Fault{Op: faultfs.Write, Nth: 1, Code: lib.SQLITE_FULL, Lasting: true})
	for range 2 {
		if err := add(db, "INSERT INTO t VALUES (1)"); err == nil {
			t.Error("no error")
		}
	}
	fs.Heal()
	if err := add(db, "INSERT INTO t VALUES (1)"); err != nil {
		t.Error(err)
	}
}

func TestPowerLossDropsUnsyncedWrites(t *testing.T) {
	fs, db, path := open(t)
	before := fs.Position()
	if err := add(db, "PRAGMA synchronous=OFF"); err != nil {
		t.Fatal(err)
	}
	if err := add(db, "INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := func() bool { return true }
	if got := fs.PowerLoss(fs.Position(), all)[path]; string(got) != string(now) {
		t.Error("if every write survives, the file differs from the real one")
	}
	if got := fs.PowerLoss(fs.Position(), nil)[path]; string(got) == string(now) {
		t.Error("an unsynced write survived")
	}
	if got, then := fs.PowerLoss(fs.Position(), nil)[path], fs.PowerLoss(before, all)[path]; string(got) != string(then) {
		t.Error("a synced write is missing")
	}
}

func TestCloseRefusesWhileAFileIsOpen(t *testing.T) {
	fs, _, _ := open(t)
	if err := fs.Close(); err == nil {
		t.Error("no error")
	}
}
