package journaltest_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

func TestSQLite(t *testing.T) {
	dir, opened := journaltest.Dir(t), make(chan int, 1)
	opened <- 0
	stores := &stores[*sqlite.Engine]{
		tables: `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT LIKE 'search_words_%' AND name <> 'schema_migrations'`,
		create: func(test *testing.T) *sqlite.Engine {
			test.Helper()
			n := <-opened
			opened <- n + 1
			engine, err := sqlite.Open(t.Context(), filepath.Join(dir, fmt.Sprintf("%d.db", n)), sqlite.Options{})
			if err != nil {
				test.Fatal(err)
			}
			closed(t, engine)
			return engine
		},
	}
	journaltest.Run(t, func(t *testing.T) storage.Engine { return stores.lend(t) })
}
