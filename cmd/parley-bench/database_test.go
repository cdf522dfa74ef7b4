package main

import (
	"errors"
	"os"
	"testing"
	"time"

	"parley/cmd/internal/command"
	"parley/ingest/journal/postgres/postgrestest"
)

// newTestDatabase returns a bench with a database of its own.
func newTestDatabase(t *testing.T) (*bench, *database) {
	t.Helper()
	server := postgrestest.URL(t) // dropped after the bench's database
	b := newTestBench(t)
	d, err := b.newDatabase(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	return b, d
}

// apply executes a statement over a connection of its own.
func (d *database) apply(t *testing.T, statement string) {
	t.Helper()
	db, err := openDatabase(d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestCloseDropsTheDatabases(t *testing.T) {
	b := &bench{work: t.TempDir(), out: t.Output()}
	d, err := b.newDatabase(t.Context(), postgrestest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	d.apply(t, floorTables)
	if err := b.close(); err != nil {
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
	if found, err := d.cut(t.Context()); found || err != nil {
		t.Fatalf("without a connection: %v, %v", found, err)
	}
	client, err := openDatabase(d.url)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := client.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if found, err := d.cut(t.Context()); !found || err != nil {
		t.Fatal(found, err)
	}
	if _, err := conn.ExecContext(t.Context(), `SELECT 1`); err == nil {
		t.Error("the connection still works")
	}
}

func TestPostgresCPUCountsConnectionsThatHaveEnded(t *testing.T) {
	_, d := newTestDatabase(t)
	if _, err := os.Stat("/proc/self/stat"); err != nil || postgresCPU() == 0 {
		t.Skip("the server's processes are not in this /proc")
	}
	before := postgresCPU()
	for range 100 { // for a moment, the time of a process that has ended is counted nowhere
		d.apply(t, `SELECT count(*) FROM generate_series(1, 1000000)`)
		if postgresCPU() > before {
			return
		}
	}
	t.Errorf("%v before, %v after", before, postgresCPU())
}

func TestSeveralFloorsShareADatabase(t *testing.T) {
	server := postgrestest.URL(t) // dropped after the bench's database
	b := newTestBench(t)
	b.postgres, b.daemons = server, 2
	trial, err := b.startTrial(t.Context(), theFloor, setup{floor: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		m := trial.ledger.say(newConversation(3))
		trial.await(t.Context(), m, time.Time{}, trial.push(m), trial.push(m)) // each floor gets one
	}
	if err := trial.awaitPosts(t.Context(), 3, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := trial.finish(); err != nil {
		t.Fatal(err)
	}
	trial.nodes.checkCounts(t, map[string]int{"envelopes WHERE done": 3, "messages": 3, "deliveries WHERE state = 'sent' AND sent <> ''": 3})
}

func TestDatabaseNeedsAPostgreSQLAddress(t *testing.T) {
	var wrong command.UsageError
	if _, err := (&bench{}).newDatabase(t.Context(), "mysql://host/db"); !errors.As(err, &wrong) {
		t.Errorf("error %v, want a UsageError", err)
	}
}
