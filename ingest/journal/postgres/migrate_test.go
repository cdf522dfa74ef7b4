package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
)

// refused opens a database and returns the error's text.
func refused(t *testing.T, url string) string {
	t.Helper()
	e, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err == nil {
		t.Fatal("opened", e.Close())
	}
	return err.Error()
}

func TestNodesCreateOneSchema(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	run(t, url, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''repeatable read''', current_database()); END $$`)
	var nodes sync.WaitGroup
	for range 8 {
		nodes.Go(func() {
			e, err := postgres.Open(t.Context(), postgres.Options{URL: url, Connections: 1})
			if err != nil {
				t.Error(err)
				return
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	nodes.Wait()
	var steps, tables int
	if err := connect(t, url).QueryRow(t.Context(), "SELECT (SELECT count(*) FROM schema_migrations), count(*) FROM pg_tables WHERE tablename = 'threads'").Scan(&steps, &tables); err != nil || steps == 0 || tables != 1 {
		t.Errorf("%d steps, %d tables, %v", steps, tables, err)
	}
}

func TestANewerDatabaseIsRefused(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	engine(t, postgres.Options{URL: url})
	run(t, url, "INSERT INTO schema_migrations VALUES (99, '0099_more.sql', 0)")
	words := refused(t, url)
	for _, word := range []string{"version 99", "newer program"} {
		if !strings.Contains(words, word) {
			t.Errorf("the error %q lacks %q", words, word)
		}
	}
	if _, err := postgres.Check(t.Context(), postgres.Options{URL: url}); err == nil || !strings.Contains(words, err.Error()) {
		t.Errorf("the check says %v", err)
	}
}

// TestCheckChangesNothing proves that Check accepts an empty database and leaves it empty.
func TestCheckChangesNothing(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	if _, err := postgres.Check(t.Context(), postgres.Options{URL: url}); err != nil {
		t.Error(err)
	}
	var tables int
	if err := connect(t, url).QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`).Scan(&tables); err != nil || tables > 0 {
		t.Errorf("the check made %d tables, %v", tables, err)
	}
	if _, err := postgres.Check(t.Context(), postgres.Options{URL: url, ListenURL: "postgres://a:b@c@d/e"}); err == nil {
		t.Error("a wrong listen_url is accepted")
	}
}

// TestKeepSchema proves that Open with KeepSchema makes no table, and opens a current database.
func TestKeepSchema(t *testing.T) {
	t.Parallel()
	o := postgres.Options{URL: postgrestest.URL(t), KeepSchema: true}
	if _, err := postgres.Open(t.Context(), o); !errors.Is(err, postgres.ErrOtherSchema) {
		t.Errorf("an empty database: %v", err)
	}
	if found, err := postgres.Inspect(t.Context(), o); err != nil || found.Schema != 0 || found.Bytes == 0 || found.Connections == 0 || found.Limit < found.Connections || found.Version == "" {
		t.Errorf("%+v, %v", found, err)
	}
	engine(t, postgres.Options{URL: o.URL})
	engine(t, o)
	run(t, o.URL, `DELETE FROM schema_migrations`)
	if _, err := postgres.Open(t.Context(), o); !errors.Is(err, postgres.ErrOtherSchema) {
		t.Errorf("an older database: %v", err)
	}
}

func TestACurrentSchemaNeedsNoRightToCreate(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	engine(t, postgres.Options{URL: url})
	run(t, url, `REVOKE CREATE ON SCHEMA public FROM PUBLIC`, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`)
	engine(t, postgres.Options{URL: url})
}

func TestAnotherEncodingIsRefused(t *testing.T) {
	t.Parallel()
	url := postgrestest.URL(t)
	at := strings.LastIndex(url, "/")
	name := url[at+1:] + "_ascii"
	run(t, url, fmt.Sprintf("CREATE DATABASE %s ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'", name))
	words := refused(t, url[:at+1]+name)
	if _, err := postgres.Check(t.Context(), postgres.Options{URL: url[:at+1] + name}); err == nil || !strings.Contains(words, err.Error()) {
		t.Errorf("Check: %v, Open: %s", err, words)
	}
	run(t, url, "DROP DATABASE "+name+" WITH (FORCE)")
	if !strings.Contains(words, "SQL_ASCII") || !strings.Contains(words, "UTF8") {
		t.Errorf("error %q", words)
	}
}
