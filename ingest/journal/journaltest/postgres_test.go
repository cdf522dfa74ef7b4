package journaltest_test

import (
	"context"
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
		return shared{engine}
	})
}

// shared tells who waits.
type shared struct{ *postgres.Engine }

var _ journaltest.Shared = shared{}

// Waits implements journaltest.Shared.
func (s shared) Waits(ctx context.Context) (waits bool, err error) {
	err = s.Read(ctx, func(tx journal.Tx) error {
		_, err := tx.Row([]any{&waits}, `SELECT CASE WHEN EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock') THEN 1 ELSE 0 END`)
		return err
	})
	return waits, err
}
