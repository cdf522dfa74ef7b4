package journaltest

import (
	"context"
	"testing"

	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/storage"
)

func TestPostgreSQL(t *testing.T) {
	database := postgrestest.URL(t) // skips all tests if there is no server
	stores := &stores[*shared]{
		tables: `SELECT CAST(tablename AS TEXT) FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'schema_migrations'`,
		create: func(test *testing.T) *shared {
			test.Helper()
			s := &shared{url: postgrestest.Schema(test, database), free: make(chan storage.Engine, nodes)}
			for range nodes {
				engine, err := s.connect(t)
				if err != nil {
					test.Fatal(err)
				}
				s.free <- engine
				s.Engine = engine
			}
			return s
		},
	}
	Run(t, func(t *testing.T) storage.Engine {
		t.Helper()
		s := stores.lend(t)
		s.t = t
		return s
	})
}

// nodes is the number of engines that the journal of a test uses.
const nodes = 3

// shared combines the engines of several nodes on one database. Concurrent writes use
// different engines while one is free.
type shared struct {
	storage.Engine
	t    *testing.T // the test that uses it
	url  string
	free chan storage.Engine // the engines without a write
}

var _ Shared = (*shared)(nil)

// connect opens an engine and closes it when the test ends.
func (s *shared) connect(t *testing.T) (storage.Engine, error) {
	engine, err := postgres.Open(t.Context(), postgres.Options{URL: s.url, Connections: 4})
	if err == nil {
		closed(t, engine)
	}
	return engine, err
}

// Another implements Shared.
func (s *shared) Another() (storage.Engine, error) { return s.connect(s.t) }

// Write implements storage.Engine.
func (s *shared) Write(ctx context.Context, options storage.WriteOptions, fn func(tx storage.Tx) error) error {
	select {
	case engine := <-s.free:
		defer func() { s.free <- engine }()
		return engine.Write(ctx, options, fn)
	default:
		return s.Engine.Write(ctx, options, fn)
	}
}

// Session implements Shared.
func (s *shared) Session(tx storage.Tx) (session int64, err error) {
	_, err = tx.Row([]any{&session}, `SELECT pg_backend_pid()`)
	return session, err
}

// Waits implements Shared.
func (s *shared) Waits(ctx context.Context, session int64) (waits bool, err error) {
	err = s.Read(ctx, func(tx storage.Tx) error {
		_, err := tx.Row([]any{&waits}, `SELECT CASE WHEN EXISTS (SELECT 1 FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND $1 = ANY(pg_blocking_pids(pid))) THEN 1 ELSE 0 END`, session)
		return err
	})
	return waits, err
}
