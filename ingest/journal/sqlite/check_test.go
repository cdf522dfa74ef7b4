package sqlite_test

import (
	"os"
	"path/filepath"
	"testing"

	"parley/ingest/journal/sqlite"
)

// TestCheck proves that Check accepts what Open would, and leaves no file.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "data", "deep", "journal.db")
	if _, err := sqlite.Check(t.Context(), path, sqlite.Options{}); err != nil {
		t.Errorf("a journal that does not exist: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("the check left %v, %v", entries, err)
	}
	e, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Check(t.Context(), path, sqlite.Options{}); err != nil {
		t.Errorf("an open journal: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(text, []byte("no database: some notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{dir, filepath.Join(path, "journal.db"), text} {
		if _, err := sqlite.Check(t.Context(), wrong, sqlite.Options{}); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}
