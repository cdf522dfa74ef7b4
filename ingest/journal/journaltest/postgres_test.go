package journaltest_test

import (
	"testing"

	"parley/ingest/journal"
	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
)

func TestPostgreSQL(t *testing.T) {
	postgrestest.URL(t) // skips the whole where there is no server
	journaltest.Run(t, func(t *testing.T) journal.Engine {
		t.Helper()
		engine, err := postgres.Open(t.Context(), postgres.Options{URL: postgrestest.URL(t)})
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
