package sqlite_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	lib "modernc.org/sqlite/lib"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/sqlite/faultfs"
	"parley/ingest/journal/storage"
)

// faulty returns a VFS that can inject faults. It is removed when the test ends.
func faulty(t *testing.T) *faultfs.FS {
	t.Helper()
	fs, err := faultfs.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	})
	return fs
}

// together writes n facts, named by the callers' numbers, in one transaction. It returns
// each caller's error.
func together(t *testing.T, e *sqlite.Engine, n int) []error {
	t.Helper()
	fns := make([]func(storage.Tx) error, n)
	for i := range fns {
		fns[i] = insert(fmt.Sprint("caller ", i))
	}
	return batch(t, e, fns...)
}

// restore writes files, whose directory is that of path, into a new directory and opens
// the database there with the system's VFS.
func restore(t *testing.T, path string, files map[string][]byte, opts ...sqlite.Option) *sqlite.Engine {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Join(dir, filepath.Base(path))
	if _, commits, err := sqlite.DamagedLog(at); commits > 0 || err != nil {
		t.Errorf("the log is said to be damaged, with %d transactions lost; %v", commits, err)
	}
	return open(t, at, opts...)
}

// truthful compares the callers' errors with the stored facts.
func truthful(t *testing.T, when string, told []error, e storage.Engine) {
	t.Helper()
	there := names(t, e)
	for i, err := range told {
		is := slices.Contains(there, fmt.Sprint("caller ", i))
		switch {
		case errors.Is(err, storage.ErrUnclear):
		case err == nil && !is:
			t.Errorf("%s: caller %d: no error, but its fact is missing", when, i)
		case err != nil && is:
			t.Errorf("%s: caller %d: error %q, but its fact is stored", when, i, err)
		}
	}
}

func TestErrorsMatchTheStoreAfterAFault(t *testing.T) {
	for _, fault := range []struct {
		name  string
		fault faultfs.Fault
	}{
		{"disk full", faultfs.Fault{Op: faultfs.Write, Code: lib.SQLITE_FULL}},
		{"full disk for good", faultfs.Fault{Op: faultfs.Write, Code: lib.SQLITE_FULL, Lasting: true}},
		{"write error", faultfs.Fault{Op: faultfs.Write, Code: lib.SQLITE_IOERR_WRITE}},
		{"sync error", faultfs.Fault{Op: faultfs.Sync, Code: lib.SQLITE_IOERR_FSYNC}},
		{"sync errors for good", faultfs.Fault{Op: faultfs.Sync, Code: lib.SQLITE_IOERR_FSYNC, Lasting: true}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			for _, earlier := range []bool{false, true} {
				fault.fault.Nth = 1
				for survive(t, fault.fault, earlier) {
					fault.fault.Nth++
				}
				if fault.fault.Nth == 1 {
					t.Error("no operation ever failed")
				}
			}
		})
	}
}

// survive injects one fault while callers write, and checks their errors. It returns
// false if the fault did not occur. With earlier, the log holds an earlier commit, so a
// failed record follows a valid one.
func survive(t *testing.T, fault faultfs.Fault, earlier bool) bool {
	t.Helper()
	const callers = 4
	fs, path := faulty(t), file(t)
	e := open(t, path, sqlite.WithVFS(fs.Name))
	if earlier {
		write(t, e, insert("earlier"))
	}
	fs.Inject(fault)
	told := together(t, e, callers)
	killed := fs.PowerLoss(fs.Position(), func() bool { return true })
	fired := fs.Heal()
	truthful(t, fmt.Sprintf("%+v, killed", fault), told, restore(t, path, killed))

	write(t, e, insert("healed"))
	truthful(t, fmt.Sprintf("%+v, healed", fault), told, e)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	reopened := open(t, path)
	truthful(t, fmt.Sprintf("%+v, reopened", fault), told, reopened)
	if !slices.Contains(names(t, reopened), "healed") {
		t.Errorf("%+v: a later write is missing", fault)
	}
	return fired
}

func TestPowerLossKeepsAcknowledgedWrites(t *testing.T) {
	const writers, each = 4, 30
	fs, path := faulty(t), file(t)
	e := open(t, path, sqlite.WithVFS(fs.Name), sqlite.WithCheckpoints(32, 128))
	var mu sync.Mutex
	acknowledged := map[string]int{} // the position after the acknowledgement
	var callers sync.WaitGroup
	for w := range writers {
		callers.Go(func() {
			for i := range each {
				name := fmt.Sprintf("%d of writer %d", i, w)
				if err := e.Write(t.Context(), storage.WriteOptions{}, insert(name)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				acknowledged[name] = fs.Position()
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	boundaries := fs.Boundaries()
	if len(boundaries) < each {
		t.Fatalf("only %d boundaries for %d sequential writes", len(boundaries), each)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i, position := range boundaries {
		survives := func() bool { return random.IntN(2) == 0 }
		if i%2 == 0 {
			survives = nil
		}
		after := restore(t, path, fs.PowerLoss(position, survives))
		there := names(t, after)
		for name, at := range acknowledged {
			if at <= position && !slices.Contains(there, name) {
				t.Errorf("power lost at %d: %s, acknowledged at %d, is missing", position, name, at)
			}
		}
		var verdict string
		if err := after.Read(t.Context(), func(tx storage.Tx) error {
			_, err := tx.Row([]any{&verdict}, "SELECT integrity_check FROM pragma_integrity_check")
			return err
		}); err != nil || verdict != "ok" {
			t.Errorf("power lost at %d: the database is damaged: %s, %v", position, verdict, err)
		}
		if err := after.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnUnclearCommitStaysUnclear(t *testing.T) {
	fs, path := faulty(t), file(t)
	e := open(t, path, sqlite.WithVFS(fs.Name))
	write(t, e, insert("earlier"))
	fs.Inject(faultfs.Fault{Op: faultfs.Sync, Nth: 1, Code: lib.SQLITE_IOERR_FSYNC})
	runs := 0
	err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		if runs++; runs == 2 {
			fs.Inject(faultfs.Fault{Op: faultfs.Write, Nth: 1, Code: lib.SQLITE_FULL})
		}
		return insert("caller 0")(tx)
	})
	if runs != 2 || !fs.Heal() {
		t.Fatalf("%d runs", runs)
	}
	killed := restore(t, path, fs.PowerLoss(fs.Position(), func() bool { return true }))
	if !slices.Contains(names(t, killed), "caller 0") {
		t.Fatal("the first attempt left no record in the log")
	}
	if !errors.Is(err, storage.ErrUnclear) {
		t.Errorf("error %v", err)
	}
}

// TestAFullDiskHasItsOwnError, and the next write after there is space succeeds.
func TestAFullDiskHasItsOwnError(t *testing.T) {
	fs, path := faulty(t), file(t)
	e := open(t, path, sqlite.WithVFS(fs.Name))
	fs.Inject(faultfs.Fault{Op: faultfs.Write, Nth: 1, Code: lib.SQLITE_FULL, Lasting: true})
	if err := e.Write(t.Context(), storage.WriteOptions{}, insert("full")); !errors.Is(err, storage.ErrFull) || !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	fs.Heal()
	write(t, e, insert("space"))
	if got := names(t, e); !slices.Equal(got, []string{"space"}) {
		t.Errorf("%q", got)
	}
}
