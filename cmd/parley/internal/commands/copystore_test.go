package commands

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/transfer"
)

// open opens an embedded store. The test must not be parallel: a process that another test
// starts would share the store's lock until it executes its program.
func open(t *testing.T, path string) *sqlite.Engine {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func done(t *testing.T, engine storage.Engine) {
	t.Helper()
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
}

// note writes a row of a table that every store has.
func note(t *testing.T, path string, position int64) {
	t.Helper()
	engine := open(t, path)
	defer done(t, engine)
	err := engine.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(`INSERT INTO retention_progress (task, position) VALUES ('bodies', $1)
			ON CONFLICT (task) DO UPDATE SET position = excluded.position`, position)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// expect compares the end of a command.
func expect(t *testing.T, got output, status int, stdout, stderr string) {
	t.Helper()
	if got.status != status || !strings.Contains(got.stdout, stdout) || !strings.Contains(got.stderr, stderr) {
		t.Errorf("status %d, want %d, with %q and %q\n%s%s", got.status, status, stdout, stderr, got.stdout, got.stderr)
	}
}

// TestCopyStore copies to PostgreSQL and back.
func TestCopyStore(t *testing.T) {
	dir, address := t.TempDir(), postgrestest.URL(t)
	note(t, filepath.Join(dir, "a.db"), 17)
	const complete = "the copy is complete: every table has the same row count and checksum in both stores\n"
	expect(t, parley(t, dir, "copy-store", "sqlite:a.db", address), 0, "retention_progress: 1 row\n"+complete, "")
	expect(t, parley(t, dir, "copy-store", address, "sqlite:b.db"), 0, complete, "")
	expect(t, parley(t, dir, "copy-store", "sqlite:a.db", address), 1, "", "TO: the store is not empty")
}

func TestCopyStoreRefuses(t *testing.T) {
	dir := t.TempDir()
	note(t, filepath.Join(dir, "a.db"), 17)
	for _, c := range []struct {
		line   string
		status int
		stderr string
	}{
		{"copy-store", 2, "arg"},
		{"copy-store sqlite:a.db", 2, "arg"},
		{"copy-store a.db sqlite:b.db", 2, "FROM must be sqlite:<file>"},
		{"copy-store sqlite:a.db mysql://me:canary@h/x", 2, "TO must be sqlite:<file>"},
		{"copy-store sqlite:a.db sqlite:a.db", 2, "the same store"},
		{"copy-store sqlite:a.db sqlite:./a.db", 1, "TO: open journal: the journal is in use"},
		{"copy-store sqlite:missing.db sqlite:b.db", 1, "FROM: stat missing.db"},
		{"copy-store sqlite:a.db postgres://me:canary@127.0.0.1:1/x", 1, "TO: "},
	} {
		got := parley(t, dir, strings.Fields(c.line)...)
		expect(t, got, c.status, "", c.stderr)
		if strings.Contains(got.stdout+got.stderr, "canary") {
			t.Errorf("parley %s prints a password: %s", c.line, got.stderr)
		}
	}
	daemon := open(t, filepath.Join(dir, "a.db"))
	defer done(t, daemon)
	expect(t, parley(t, dir, "copy-store", "sqlite:a.db", "sqlite:b.db"), 1, "", "FROM: open journal: the journal is in use")
}

// TestUnfinishedCopyIsRefused by run and by copy-store.
func TestUnfinishedCopyIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "workspaces/ours.yaml", "id: ours\nplatform: web\nagent: echo\nweb: {tokens: [{id: a, token: ci-7f3a9c51d2e84b60a1c35e97, name: c}]}\n")
	write(t, dir, "parley.yaml", "listen: 127.0.0.1:0\nstore: sqlite:b.db\n")
	note(t, filepath.Join(dir, "a.db"), 17)
	from, to := open(t, filepath.Join(dir, "a.db")), open(t, filepath.Join(dir, "b.db"))
	ctx, cancel := context.WithCancel(t.Context())
	err := transfer.Copy(ctx, from, to, transfer.Options{Progress: func(transfer.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	done(t, from)
	done(t, to)
	const again = "the store is an unfinished copy: remove it and start parley copy-store again with an empty target"
	expect(t, parley(t, dir, "run"), 1, "", again)
	expect(t, parley(t, dir, "copy-store", "sqlite:a.db", "sqlite:b.db"), 1, "", "TO: "+again)
	expect(t, parley(t, dir, "copy-store", "sqlite:b.db", "sqlite:c.db"), 1, "", "FROM: "+again)
}
