package postgres_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/postgres"
	"parley/ingest/journal/storage"
)

func TestLaterFailsWithoutARow(t *testing.T) {
	t.Parallel()
	url := database(t)
	e := engine(t, postgres.Options{URL: url, Connections: 1})
	write(t, e, insert("there"))
	for name, query := range map[string]string{
		"update":    "UPDATE facts SET n = 1 WHERE name = $1",
		"delete":    "DELETE FROM facts WHERE name = $1 AND name <> 'there' OR name = $1 AND n < 0 OR $1 = 'there' AND name = 'ballast'",
		"insert":    "INSERT INTO facts (name) SELECT 'x ' || name FROM facts WHERE name = $1",
		"conflict":  "INSERT INTO facts (name) SELECT name FROM facts WHERE name = $1 ON CONFLICT (name) DO UPDATE SET n = 2",
		"returning": "UPDATE facts SET n = 1 WHERE name = $1 RETURNING id",
		"with":      "WITH one AS (SELECT id FROM facts WHERE name = $1) UPDATE facts SET n = 3 FROM one WHERE facts.id = one.id",
		"into":      "UPDATE facts SET n = 1 WHERE name = $1 RETURNING id",
		"select":    "SELECT id FROM facts WHERE name = $1",
		"lock":      "\n\tselect id FROM facts WHERE name = $1 FOR UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			run := func(whom string, then func(storage.Tx) error) error {
				var id int64
				var dest []any
				if name == "into" {
					dest = []any{&id}
				}
				return e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
					if err := later("half " + name)(tx); err != nil {
						return err
					}
					if name == "delete" {
						_, _ = tx.Exec("INSERT INTO facts (name) VALUES ('ballast') ON CONFLICT DO NOTHING")
					}
					return errors.Join(tx.Later(errRefused, dest, query, whom), then(tx))
				})
			}
			nothing := func(storage.Tx) error { return nil }
			asks := func(tx storage.Tx) error { _, err := tx.Row(nil, "SELECT WHERE true"); return err }
			overlooks := func(tx storage.Tx) error { _ = asks(tx); return nil }
			for range 2 {
				for _, then := range []func(storage.Tx) error{nothing, asks, overlooks} {
					if err := run("nobody", then); !errors.Is(err, errRefused) {
						t.Errorf("without a row: error %v", err)
					}
				}
			}
			if err := run("there", nothing); err != nil {
				t.Errorf("with a row: error %v", err)
			}
			if got := strings.Join(names(t, e), ", "); strings.Count(got, "half "+name) != 1 {
				t.Errorf("stored %s", got)
			}
		})
	}
}

func TestAServerErrorIsNoMissingRow(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	write(t, e, insert("there"))
	for _, query := range []string{"UPDATE facts SET n = 1 / n", "UPDATE facts SET n = CAST(name AS BIGINT)"} {
		err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error { return tx.Later(errRefused, nil, query) })
		if err == nil || errors.Is(err, errRefused) {
			t.Errorf("%s: error %v", query, err)
		}
	}
}

func TestAStatementIsPreparedOnce(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t), Connections: 1})
	before := backend(t, e)
	const add = "INSERT INTO facts (name, n) VALUES ($1, 7)"
	for _, first := range []string{"SELECT 1 / 0", "SELECT nothing FROM nowhere", "SELECT 1"} {
		err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
			return errors.Join(tx.Later(nil, nil, first), tx.Later(nil, nil, add, first), tx.Later(nil, nil, add, first+" again"))
		})
		if failed := err != nil; failed != (first != "SELECT 1") {
			t.Errorf("%s: error %v", first, err)
		}
	}
	if diff := cmp.Diff([]string{"SELECT 1", "SELECT 1 again"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
	if after := backend(t, e); after != before {
		t.Error("the connection was closed")
	}
}

func TestMoreStatementsThanTheCacheHolds(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t), Connections: 1})
	const many = 1100
	for range 2 {
		write(t, e, func(tx storage.Tx) error {
			sum, want := int64(0), int64(0)
			got := make([]int64, many)
			for i := range got {
				if err := tx.Later(nil, []any{&got[i]}, fmt.Sprintf("SELECT %d + CAST($1 AS BIGINT)", i), int64(1)); err != nil {
					return err
				}
				want += int64(i) + 1
			}
			_, err := tx.Row(nil, "SELECT WHERE true")
			for _, n := range got {
				sum += n
			}
			if sum != want {
				t.Errorf("sum %d, want %d", sum, want)
			}
			return err
		})
	}
}

func TestAnInvalidPlanIsPreparedAgain(t *testing.T) {
	t.Parallel()
	url := database(t)
	e := engine(t, postgres.Options{URL: url, Connections: 2})
	all := func() error {
		return e.Read(t.Context(), func(tx storage.Tx) error {
			return tx.Rows(func(func(...any) error) error { return nil }, "SELECT * FROM facts")
		})
	}
	write(t, e, insert("a"))
	err := all()
	run(t, url, "ALTER TABLE facts ADD COLUMN more TEXT")
	if err := errors.Join(err, all()); err != nil {
		t.Error(err)
	}
	write(t, e, func(tx storage.Tx) error { _, err := tx.Exec("DEALLOCATE ALL"); return err })
	if err := all(); err != nil {
		t.Error(err)
	}
	write(t, e, insert("b"))
}

func TestBehindAPoolerAConnectionHasNoState(t *testing.T) {
	t.Parallel()
	url := database(t)
	for mode, named := range map[string]bool{"exec": false, "simple_protocol": false, "cache_describe": false, "cache_statement": true} {
		t.Run(mode, func(t *testing.T) {
			e := engine(t, postgres.Options{URL: url + "?default_query_exec_mode=" + mode, Connections: 1})
			var statements int64
			var seqscan, durable string
			for i := range 2 {
				write(t, e, insert(mode+fmt.Sprint(i)))
				write(t, e, func(tx storage.Tx) error {
					_, err := tx.Row([]any{&statements, &seqscan, &durable},
						"SELECT count(*), current_setting('enable_seqscan'), current_setting('synchronous_commit') FROM pg_prepared_statements")
					return err
				})
			}
			if (statements > 0) != named || seqscan != "off" || durable != "on" {
				t.Errorf("%d statements are prepared; seqscan is %s and synchronous_commit %s", statements, seqscan, durable)
			}
			if err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
				return tx.Later(errRefused, nil, "UPDATE facts SET n = 1 WHERE name = $1", "nobody")
			}); !errors.Is(err, errRefused) {
				t.Errorf("told %v", err)
			}
		})
	}
}

func TestCommitIsDurableDespiteDefaults(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, setting := range []string{"synchronous_commit = off", "default_transaction_isolation = 'serializable'", "default_transaction_read_only = on"} {
		run(t, url, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET `+strings.ReplaceAll(setting, "'", "''")+`', current_database()); END $$`)
	}
	for _, mode := range []string{"exec", "cache_statement"} {
		e := engine(t, postgres.Options{URL: url + "?default_query_exec_mode=" + mode})
		var durable, isolation string
		write(t, e, func(tx storage.Tx) error {
			_, err := tx.Row([]any{&durable, &isolation}, "SELECT current_setting('synchronous_commit'), current_setting('transaction_isolation')")
			return err
		})
		if durable != "on" || isolation != "read committed" {
			t.Errorf("%s: synchronous_commit is %s, and the isolation %s", mode, durable, isolation)
		}
	}
}

func TestAnArgumentOfTheWrongTypeIsTheCallersError(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	runs := 0
	err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		runs++
		if err := insert("half")(tx); err != nil {
			return err
		}
		return tx.Later(nil, nil, "INSERT INTO facts (name) VALUES ($1)", int64(1))
	})
	if err == nil || storage.Unavailable(err) || runs != 1 {
		t.Errorf("%v after %d runs", err, runs)
	}
	if got := names(t, e); len(got) > 0 {
		t.Errorf("stored %v", got)
	}
}

func TestScanConvertsNullAndIntegers(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe", "cache_statement"} {
		e := engine(t, postgres.Options{URL: url + "?default_query_exec_mode=" + mode, Connections: 1})
		number, text, body, null := int64(1), "text", []byte("body"), true
		var one, zero, yes bool
		var at time.Time
		never, noTime := time.UnixMilli(1), time.UnixMilli(1)
		if err := e.Read(t.Context(), func(tx storage.Tx) error {
			_, err := tx.Row([]any{&number, &text, &body, &null, &one, &zero, &yes, &at, &never, &noTime},
				"SELECT NULL::bigint, NULL::text, NULL::bytea, NULL::bigint, 1, 0::bigint, true, 1500::bigint, 0::bigint, NULL::bigint")
			return err
		}); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if diff := cmp.Diff([]any{int64(0), "", []byte(nil), false, true, false, true, time.UnixMilli(1500).UTC(), time.Time{}, time.Time{}},
			[]any{number, text, body, null, one, zero, yes, at, never, noTime}); diff != "" {
			t.Errorf("%s: %s", mode, diff)
		}
	}
}

func TestTheFirstMissedRowEndsTheTransaction(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	errSecond := errors.New("second")
	const update = "UPDATE facts SET n = 1 WHERE name = $1"
	err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		return errors.Join(later("half")(tx), tx.Later(errRefused, nil, update, "nobody"), tx.Later(errSecond, nil, update, "nobody"))
	})
	if !errors.Is(err, errRefused) || errors.Is(err, errSecond) || len(names(t, e)) > 0 {
		t.Errorf("%v, and stored %v", err, names(t, e))
	}
}

// TestTables reads a table whose key has another order than its columns, and which is in another schema too.
func TestTables(t *testing.T) {
	t.Parallel()
	url := database(t)
	e := engine(t, postgres.Options{URL: url})
	run(t, url, "CREATE TABLE odd (n BIGINT, gone TEXT, body BYTEA NOT NULL, second TEXT, first BIGINT, PRIMARY KEY (first, second))",
		"CREATE UNIQUE INDEX odd_n ON odd (n)", "ALTER TABLE odd DROP COLUMN gone", "ALTER TABLE odd ADD COLUMN later BOOLEAN",
		"CREATE SCHEMA other", "CREATE TABLE other.odd (id BIGINT PRIMARY KEY, more TEXT)")
	var odd []storage.Table
	if err := e.Read(t.Context(), func(tx storage.Tx) error {
		all, err := tx.Tables()
		odd = slices.DeleteFunc(all, func(table storage.Table) bool { return table.Name != "odd" })
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []storage.Table{{Name: "odd", Key: 2, Columns: []storage.Column{{Name: "first", Type: "INTEGER"}, {Name: "second", Type: "TEXT"},
		{Name: "n", Type: "INTEGER", Null: true}, {Name: "body", Type: "BLOB"}, {Name: "later", Type: "boolean", Null: true}}}}
	if diff := cmp.Diff(want, odd); diff != "" {
		t.Error(diff)
	}
}
