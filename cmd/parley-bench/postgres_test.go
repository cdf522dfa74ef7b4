package main

import (
	"database/sql"
	"errors"
	"net/http"
	"os"
	"testing"
	"time"

	"parley/ingest/journal/postgres/postgrestest"
)

// newTestDatabase is a database as a run makes it.
func newTestDatabase(t *testing.T) (*bench, *database) {
	t.Helper()
	b := &bench{work: t.TempDir(), out: t.Output()}
	d, err := b.newDatabase(t.Context(), postgrestest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	return b, d
}

func TestARunDropsItsDatabases(t *testing.T) {
	server := postgrestest.URL(t)
	b := &bench{work: t.TempDir(), out: t.Output()}
	d, err := b.newDatabase(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.apply(t.Context(), floorTables); err != nil {
		t.Fatal(err)
	}
	if err := b.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin, err := sql.Open("pgx", server)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	var left int
	if err := admin.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_database WHERE datname = $1`, d.name).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases of that name are left, %v", left, err)
	}
}

func TestAConnectionOfTheDatabaseIsCut(t *testing.T) {
	b, d := newTestDatabase(t)
	defer b.close(t.Context())
	if found, err := d.cut(t.Context()); found || err != nil {
		t.Fatalf("nobody is there: %v, %v", found, err)
	}
	client, err := d.open()
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

func TestTheServersWorkIsSeen(t *testing.T) {
	b, d := newTestDatabase(t)
	defer b.close(t.Context())
	if _, err := os.Stat("/proc/self/stat"); err != nil || d.postmaster == 0 {
		t.Skip("the server's processes are not in this /proc")
	}
	before := d.serverCPU()
	if err := d.apply(t.Context(), `SELECT count(*) FROM generate_series(1, 1000000)`); err != nil {
		t.Fatal(err)
	}
	if after := d.serverCPU(); after <= before { // the connection has ended: it counts all the same
		t.Errorf("%v before, %v after", before, after)
	}
}

func TestSeveralFloorsShareADatabase(t *testing.T) {
	api := startTestAPI(t)
	b := &bench{work: t.TempDir(), out: t.Output()}
	defer b.close(t.Context())
	n, err := b.newFloors(t.Context(), theFloor, nodesFlags{postgres: postgrestest.URL(t), daemons: 2}, settings{api: api})
	if err != nil {
		t.Fatal(err)
	}
	defer n.end()
	if err := n.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := newLedger(echoed)
	for range 3 {
		m := l.say(newConversation(3))
		for _, address := range n.addresses() {
			line := &line{address: address}
			defer line.close()
			if status, err := line.post(signed(address, m.said(), 0, time.Now())); status != http.StatusOK || err != nil {
				t.Fatal(status, err)
			}
		}
		m.revisions[0].acked = time.Now()
	}
	if _, err := api.Await(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if err := n.stop(); err != nil { // they end what they have begun
		t.Fatal(err)
	}
	if verdict := l.check(api.Posts()); verdict.total() > 0 {
		t.Error(verdict)
	}
	n.holds(t, map[string]int{"envelopes WHERE done": 3, "messages": 3, "deliveries WHERE state = 'sent' AND sent <> ''": 3})
}

// holds checks how many rows there are.
func (n *nodes) holds(t *testing.T, counts map[string]int) {
	t.Helper()
	db, err := n.store()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for rows, want := range counts {
		var got int
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+rows).Scan(&got); got != want || err != nil {
			t.Errorf("%d %s, want %d; %v", got, rows, want, err)
		}
	}
}

func TestAnAddressThatIsNoPostgreSQL(t *testing.T) {
	b := &bench{}
	var wrong usageError
	if _, err := b.newDatabase(t.Context(), "mysql://host/db"); !errors.As(err, &wrong) {
		t.Error(err)
	}
}
