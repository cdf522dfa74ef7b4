package sqlite_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

// reader opens a database with the scratch schema to read.
func reader(t *testing.T, path string, opts ...sqlite.Option) *sqlite.Reader {
	t.Helper()
	r, err := sqlite.OpenReader(t.Context(), path, sqlite.With(append(opts, sqlite.WithSteps(scratch))...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// stopped returns the path of a database with a fact, which no engine has open.
func stopped(t *testing.T) string {
	t.Helper()
	path := file(t)
	e := open(t, path)
	write(t, e, insert("one"))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAReaderDisturbsNoDaemon: while a command reads, a daemon starts, writes and stops. The command sees its snapshot, and
// then the new state. It changes nothing while a daemon has the database, and can write before and after.
func TestAReaderDisturbsNoDaemon(t *testing.T) {
	path := stopped(t)
	r := reader(t, path)
	var e *sqlite.Engine
	if err := r.Read(t.Context(), func(tx storage.Tx) error {
		var before, after int64
		if _, err := tx.Row([]any{&before}, `SELECT count(*) FROM facts`); err != nil {
			return err
		}
		e = open(t, path)
		write(t, e, insert("two"))
		if _, err := tx.Row([]any{&after}, `SELECT count(*) FROM facts`); err != nil || after != before {
			t.Errorf("%d facts after %d, %v", after, before, err)
		}
		if err := r.Write(t.Context(), storage.WriteOptions{}, insert("refused")); !errors.Is(err, storage.ErrLocked) {
			t.Errorf("a write beside a daemon: %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "two"}, names(t, r)); diff != "" {
		t.Error(diff)
	}
	write(t, r, insert("three"))
	if _, err := sqlite.Open(t.Context(), path, sqlite.With(sqlite.WithSteps(scratch))); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("a daemon beside a command that has written: %v", err)
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, names(t, r)); diff != "" {
		t.Error(diff)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

// TestAReaderSeesTheLogOfAKilledDaemon, and leaves it for the next one.
func TestAReaderSeesTheLogOfAKilledDaemon(t *testing.T) {
	path := file(t)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), daemonEnv+"="+path)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("output of the daemon: %q, %v", line, err)
	}
	want := []string{"from the first daemon"}
	if diff := cmp.Diff(want, names(t, reader(t, path))); diff != "" {
		t.Errorf("beside the daemon: %s", diff)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed by the test
	r := reader(t, path)
	if diff := cmp.Diff(want, names(t, r)); diff != "" {
		t.Error(diff)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, names(t, open(t, path))); diff != "" {
		t.Error(diff)
	}
}

// TestAReaderWithoutSharedMemory, which believes that the database never changes, sees what a daemon writes later.
func TestAReaderWithoutSharedMemory(t *testing.T) {
	path := stopped(t)
	r := reader(t, path, sqlite.WithoutSharedMemory())
	if diff := cmp.Diff([]string{"one"}, names(t, r)); diff != "" {
		t.Error(diff)
	}
	e := open(t, path)
	for _, name := range []string{"two", "three"} {
		write(t, e, insert(name))
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, names(t, r)); diff != "" {
		t.Error(diff)
	}
}

// TestAReaderRefusesAnotherSchema, and changes none.
func TestAReaderRefusesAnotherSchema(t *testing.T) {
	path := stopped(t)
	newer := schema.Step{Name: "0002_more.sql", Text: `CREATE TABLE more (id INTEGER PRIMARY KEY) STRICT;`}
	if _, err := sqlite.OpenReader(t.Context(), path, sqlite.With(sqlite.WithSteps(scratch, newer))); !errors.Is(err, sqlite.ErrOtherSchema) {
		t.Errorf("%v", err)
	}
	empty := file(t)
	if _, err := sqlite.OpenReader(t.Context(), empty, sqlite.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(empty); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff([]string{"one"}, names(t, reader(t, path))); diff != "" {
		t.Error(diff)
	}
}
