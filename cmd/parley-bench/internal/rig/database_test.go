package rig

import (
	"errors"
	"os"
	"testing"

	"parley/cmd/internal/command"
	"parley/cmd/parley-bench/internal/figure"
	"parley/ingest/journal/postgres/postgrestest"
)

// newTestDatabase returns a bench with a database of its own.
func newTestDatabase(t *testing.T) (*Bench, *Database) {
	t.Helper()
	server := postgrestest.URL(t) // dropped after the bench's database
	b := &Bench{Work: t.TempDir(), Out: t.Output()}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	d, err := b.newDatabase(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	return b, d
}

// apply executes a statement over a connection of its own.
func (d *Database) apply(t *testing.T, statement string) {
	t.Helper()
	db, err := openDatabase(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestCloseDropsTheDatabases(t *testing.T) {
	b := &Bench{Work: t.TempDir(), Out: t.Output()}
	d, err := b.newDatabase(t.Context(), postgrestest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	d.apply(t, `CREATE TABLE messages (id bigint)`)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	admin, err := openDatabase(postgrestest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	var left int
	if err := admin.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_database WHERE datname = $1`, d.name).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases of that name are left, %v", left, err)
	}
}

func TestCutTerminatesAConnection(t *testing.T) {
	_, d := newTestDatabase(t)
	if found, err := d.Cut(t.Context()); found || err != nil {
		t.Fatalf("without a connection: %v, %v", found, err)
	}
	client, err := openDatabase(d.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := client.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if found, err := d.Cut(t.Context()); !found || err != nil {
		t.Fatal(found, err)
	}
	if _, err := conn.ExecContext(t.Context(), `SELECT 1`); err == nil {
		t.Error("the connection still works")
	}
}

func TestPostgresCPUCountsConnectionsThatHaveEnded(t *testing.T) {
	_, d := newTestDatabase(t)
	if _, err := os.Stat("/proc/self/stat"); err != nil || figure.PostgresCPU() == 0 {
		t.Skip("the server's processes are not in this /proc")
	}
	before := figure.PostgresCPU()
	for range 100 { // for a moment, the time of a process that has ended is counted nowhere
		d.apply(t, `SELECT count(*) FROM generate_series(1, 1000000)`)
		if figure.PostgresCPU() > before {
			return
		}
	}
	t.Errorf("%v before, %v after", before, figure.PostgresCPU())
}

func TestDatabaseNeedsAPostgreSQLAddress(t *testing.T) {
	var wrong command.UsageError
	if _, err := (&Bench{}).newDatabase(t.Context(), "mysql://host/db"); !errors.As(err, &wrong) {
		t.Errorf("error %v, want a UsageError", err)
	}
}
