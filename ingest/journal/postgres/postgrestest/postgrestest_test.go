package postgrestest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"parley/ingest/journal/postgres/postgrestest"
)

// fake is a test that needs a database.
type fake struct {
	testing.TB
	skipped, failed string
}

// ended is the panic value that ends a fake early.
type ended struct{}

func (f *fake) Skipf(format string, args ...any) {
	f.skipped = fmt.Sprintf(format, args...)
	panic(ended{})
}

func (f *fake) Fatalf(format string, args ...any) {
	f.failed = fmt.Sprintf(format, args...)
	panic(ended{})
}

// ask requests a database.
func (f *fake) ask() {
	defer func() {
		if p := recover(); p != nil && p != (ended{}) {
			panic(p)
		}
	}()
	postgrestest.URL(f)
}

func TestAMissingServerSkipsUnlessRequired(t *testing.T) {
	t.Setenv(postgrestest.Address, "postgres://127.0.0.1:1/nothing")
	t.Setenv(postgrestest.Required, "")
	f := &fake{TB: t}
	if f.ask(); f.failed != "" || !strings.Contains(f.skipped, "PostgreSQL") || !strings.Contains(f.skipped, postgrestest.Address) {
		t.Errorf("skipped %q, failed %q", f.skipped, f.failed)
	}
	t.Setenv(postgrestest.Required, "1")
	f = &fake{TB: t}
	if f.ask(); f.skipped != "" || !strings.Contains(f.failed, "PostgreSQL") {
		t.Errorf("skipped %q, failed %q", f.skipped, f.failed)
	}
}

func TestURLCreatesAndDropsADatabase(t *testing.T) {
	var url string
	t.Run("test", func(t *testing.T) {
		if url = postgrestest.URL(t); url == postgrestest.URL(t) {
			t.Error("two calls returned the same database")
		}
		c, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Exec(t.Context(), "CREATE TABLE left_behind ()"); err != nil {
			t.Error(err)
		}
	})
	if url == "" {
		t.Skip("skipped: there is no PostgreSQL")
	}
	if c, err := pgx.Connect(t.Context(), url); err == nil {
		_ = c.Close(t.Context())
		t.Error("the database still exists")
	}
}

func TestSchemasAreSeparate(t *testing.T) {
	t.Parallel()
	database := postgrestest.URL(t)
	for range 2 { // each has a table of the same name
		c, err := pgx.Connect(t.Context(), postgrestest.Schema(t, database))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Exec(t.Context(), "CREATE TABLE same ()"); err != nil {
			t.Error(err)
		}
		_ = c.Close(t.Context())
	}
}
