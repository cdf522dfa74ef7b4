package sqlite_test

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

// scratch is a schema for tests of the engine, independent of the journal's schema.
var scratch = schema.Step{Name: "0001_init.sql", Text: `
	CREATE TABLE facts (id INTEGER PRIMARY KEY, name TEXT UNIQUE, body BLOB) STRICT;
	CREATE TABLE log (id INTEGER PRIMARY KEY, name TEXT NOT NULL, body BLOB NOT NULL) STRICT;
`}

// file returns the path of a database that does not exist yet.
func file(t testing.TB) string {
	return filepath.Join(t.TempDir(), "state", "parley.db")
}

// open opens the database at path with the scratch schema.
func open(t testing.TB, path string, opts ...sqlite.Option) *sqlite.Engine {
	t.Helper()
	e, err := sqlite.Open(t.Context(), path, sqlite.With(append([]sqlite.Option{sqlite.WithSteps(scratch)}, opts...)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// insert returns a function that adds a fact.
func insert(name string) func(storage.Tx) error {
	return func(tx storage.Tx) error {
		_, err := tx.Exec("INSERT INTO facts (name) VALUES (?)", name)
		return err
	}
}

// names returns the facts of e, oldest first.
func names(t testing.TB, e storage.Engine) []string {
	t.Helper()
	var out []string
	if err := e.Read(t.Context(), func(tx storage.Tx) error {
		out = nil // it may run again
		return tx.Rows(func(scan func(...any) error) error {
			var name string
			if err := scan(&name); err != nil {
				return err
			}
			out = append(out, name)
			return nil
		}, "SELECT name FROM facts ORDER BY id")
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// yield lets other goroutines run.
func yield() { runtime.Gosched() }

func write(t testing.TB, e storage.Engine, fn func(storage.Tx) error) {
	t.Helper()
	if err := e.Write(context.WithoutCancel(t.Context()), storage.WriteOptions{}, fn); err != nil {
		t.Fatal(err)
	}
}
