package journaltest

import (
	"fmt"
	"path/filepath"
	"testing"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
)

// SQLite tests the promises of a part of the journal on SQLite. The test of the part's package calls it with the
// name of its folder.
func SQLite(t *testing.T, part string) {
	dir, opened := Dir(t), make(chan int, 1)
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
	tested := false
	for _, p := range parts() {
		if p.name == part {
			tested = true
			p.run(t, func(t *testing.T) storage.Engine { return stores.lend(t) })
		}
	}
	if !tested {
		t.Errorf("the journal has no promises of %q", part)
	}
}
