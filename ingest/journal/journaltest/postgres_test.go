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
	database := postgrestest.URL(t) // skips the whole where there is no server
	journaltest.Run(t, func(t *testing.T) journal.Engine {
		t.Helper()
		s := shared{t: t, url: postgrestest.Schema(t, database), free: make(chan journal.Engine, nodes)}
		for range nodes {
			engine, err := s.Another()
			if err != nil {
				t.Fatal(err)
			}
			s.free <- engine
			s.Engine = engine
		}
		return s
	})
}

// nodes is how many engines a test's journal goes about with.
const nodes = 3

// shared are several nodes' engines on one database: what goes on at the same time
// goes on in different ones, where one is free.
type shared struct {
	journal.Engine
	t    *testing.T
	url  string
	free chan journal.Engine // that write for nobody
}

var _ journaltest.Shared = shared{}

// Another implements journaltest.Shared.
func (s shared) Another() (journal.Engine, error) {
	engine, err := postgres.Open(s.t.Context(), postgres.Options{URL: s.url, Connections: 4})
	if err != nil {
		return nil, err
	}
	s.t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return engine, nil
}

// Write implements journal.Engine.
func (s shared) Write(ctx context.Context, fn func(tx journal.Tx) error) error {
	select {
	case engine := <-s.free:
		defer func() { s.free <- engine }()
		return engine.Write(ctx, fn)
	default:
		return s.Engine.Write(ctx, fn)
	}
}

// Waits implements journaltest.Shared.
func (s shared) Waits(ctx context.Context) (waits bool, err error) {
	err = s.Read(ctx, func(tx journal.Tx) error {
		_, err := tx.Row([]any{&waits}, `SELECT CASE WHEN EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock') THEN 1 ELSE 0 END`)
		return err
	})
	return waits, err
}
