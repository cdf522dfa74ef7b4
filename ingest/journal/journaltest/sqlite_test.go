package journaltest_test

import (
	"path/filepath"
	"testing"

	"parley/ingest/journal"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/sqlite"
)

func TestSQLite(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journal.Engine {
		t.Helper()
		engine, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "parley.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := engine.Close(); err != nil {
				t.Error(err)
			}
		})
		return engine
	})
}
