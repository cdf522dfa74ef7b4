package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal"
	"parley/ingest/journal/postgres"
)

func TestLaterFailsWhereNothingIsFoundOrChanged(t *testing.T) {
	t.Parallel()
	url := database(t)
	e := engine(t, postgres.Options{URL: url, Connections: 1})
	write(t, e, insert("there"))
	for name, query := range map[string]string{
		"update":    "UPDATE facts SET n = 1 WHERE name = ?",
		"delete":    "DELETE FROM facts WHERE name = ? AND name <> 'there' OR name = ?1 AND n < 0 OR ?1 = 'there' AND name = 'ballast'",
		"insert":    "INSERT INTO facts (name) SELECT 'x ' || name FROM facts WHERE name = ?",
		"conflict":  "INSERT INTO facts (name) SELECT name FROM facts WHERE name = ? ON CONFLICT (name) DO UPDATE SET n = 2",
		"returning": "UPDATE facts SET n = 1 WHERE name = ? RETURNING id",
		"with":      "WITH one AS (SELECT id FROM facts WHERE name = ?) UPDATE facts SET n = 3 FROM one WHERE facts.id = one.id",
		"into":      "UPDATE facts SET n = 1 WHERE name = ? RETURNING id",
		"select":    "SELECT id FROM facts WHERE name = ?",
		"lock":      "\n\tselect id FROM facts WHERE name = ? FOR UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			run := func(whom string, then func(journal.Tx) error) error {
				var id int64
				var dest []any
				if name == "into" {
					dest = []any{&id}
				}
				return e.Write(t.Context(), func(tx journal.Tx) error {
					if err := later("half " + name)(tx); err != nil {
						return err
					}
					if name == "delete" {
						_, _ = tx.Exec("INSERT INTO facts (name) VALUES ('ballast') ON CONFLICT DO NOTHING")
					}
					return errors.Join(tx.Later(errRefused, dest, query, whom), then(tx))
				})
			}
			nothing := func(journal.Tx) error { return nil }
			asks := func(tx journal.Tx) error { _, err := tx.Row(nil, "SELECT WHERE true"); return err }
			overlooks := func(tx journal.Tx) error { _ = asks(tx); return nil }
			for range 2 {
				for _, then := range []func(journal.Tx) error{nothing, asks, overlooks} {
					if err := run("nobody", then); !errors.Is(err, errRefused) {
						t.Errorf("it found nobody, and was told %v", err)
					}
				}
			}
			if err := run("there", nothing); err != nil {
				t.Errorf("it found one, and was told %v", err)
			}
			if got := strings.Join(names(t, e), ", "); strings.Count(got, "half "+name) != 1 {
				t.Errorf("stored %s", got)
			}
		})
	}
}

func TestAGuardTakesNobodyElsesFailureForItsOwn(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	write(t, e, insert("there"))
	for _, query := range []string{"UPDATE facts SET n = 1 / n", "UPDATE facts SET n = CAST(name AS BIGINT)"} {
		err := e.Write(t.Context(), func(tx journal.Tx) error { return tx.Later(errRefused, nil, query) })
		if err == nil || errors.Is(err, errRefused) {
			t.Errorf("%s: told %v", query, err)
		}
	}
}

func TestAStatementIsPreparedOnceWhateverStandsBeforeIt(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t), Connections: 1})
	before := backend(t, e)
	const add = "INSERT INTO facts (name, n) VALUES (?, 7)"
	for _, first := range []string{"SELECT 1 / 0", "SELECT nothing FROM nowhere", "SELECT 1"} {
		err := e.Write(t.Context(), func(tx journal.Tx) error {
			return errors.Join(tx.Later(nil, nil, first), tx.Later(nil, nil, add, first), tx.Later(nil, nil, add, first+" again"))
		})
		if failed := err != nil; failed != (first != "SELECT 1") {
			t.Errorf("%s: told %v", first, err)
		}
	}
	if diff := cmp.Diff([]string{"SELECT 1", "SELECT 1 again"}, names(t, e)); diff != "" {
		t.Error(diff)
	}
	if after := backend(t, e); after != before {
		t.Error("the connection was given up")
	}
}

func TestMoreStatementsThanAreKept(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t), Connections: 1})
	const many = 1100
	for range 2 {
		write(t, e, func(tx journal.Tx) error {
			sum, want := int64(0), int64(0)
			got := make([]int64, many)
			for i := range got {
				if err := tx.Later(nil, []any{&got[i]}, fmt.Sprintf("SELECT %d + CAST(? AS BIGINT)", i), int64(1)); err != nil {
					return err
				}
				want += int64(i) + 1
			}
			_, err := tx.Row(nil, "SELECT WHERE true")
			for _, n := range got {
				sum += n
			}
			if sum != want {
				t.Errorf("the sum is %d, not %d", sum, want)
			}
			return err
		})
	}
}

func TestAStatementWhosePlanIsGoneIsPreparedAgain(t *testing.T) {
	t.Parallel()
	url := database(t)
	e := engine(t, postgres.Options{URL: url, Connections: 2})
	all := func() error {
		return e.Read(t.Context(), func(tx journal.Tx) error {
			return tx.Rows(func(func(...any) error) error { return nil }, "SELECT * FROM facts")
		})
	}
	write(t, e, insert("a"))
	err := all()
	run(t, url, "ALTER TABLE facts ADD COLUMN more TEXT")
	if err := errors.Join(err, all()); err != nil {
		t.Error(err)
	}
	write(t, e, func(tx journal.Tx) error { _, err := tx.Exec("DEALLOCATE ALL"); return err })
	if err := all(); err != nil {
		t.Error(err)
	}
	write(t, e, insert("b"))
}

func TestBehindAPoolerNothingIsLeftOnAConnection(t *testing.T) {
	t.Parallel()
	url := database(t)
	for mode, named := range map[string]bool{"exec": false, "simple_protocol": false, "cache_describe": false, "cache_statement": true} {
		t.Run(mode, func(t *testing.T) {
			e := engine(t, postgres.Options{URL: url + "?default_query_exec_mode=" + mode, Connections: 1})
			var statements int64
			var seqscan, durable string
			for i := range 2 {
				write(t, e, insert(mode+fmt.Sprint(i)))
				write(t, e, func(tx journal.Tx) error {
					_, err := tx.Row([]any{&statements, &seqscan, &durable},
						"SELECT count(*), current_setting('enable_seqscan'), current_setting('synchronous_commit') FROM pg_prepared_statements")
					return err
				})
			}
			if (statements > 0) != named || seqscan != "off" || durable != "on" {
				t.Errorf("%d statements are prepared; seqscan is %s and synchronous_commit %s", statements, seqscan, durable)
			}
			if err := e.Write(t.Context(), func(tx journal.Tx) error {
				return tx.Later(errRefused, nil, "UPDATE facts SET n = 1 WHERE name = ?", "nobody")
			}); !errors.Is(err, errRefused) {
				t.Errorf("told %v", err)
			}
		})
	}
}

func TestCommitIsDurableWhateverTheDatabaseSays(t *testing.T) {
	t.Parallel()
	url := database(t)
	for _, setting := range []string{"synchronous_commit = off", "default_transaction_isolation = 'serializable'", "default_transaction_read_only = on"} {
		run(t, url, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET `+strings.ReplaceAll(setting, "'", "''")+`', current_database()); END $$`)
	}
	for _, mode := range []string{"exec", "cache_statement"} {
		e := engine(t, postgres.Options{URL: url + "?default_query_exec_mode=" + mode})
		var durable, isolation string
		write(t, e, func(tx journal.Tx) error {
			_, err := tx.Row([]any{&durable, &isolation}, "SELECT current_setting('synchronous_commit'), current_setting('transaction_isolation')")
			return err
		})
		if durable != "on" || isolation != "read committed" {
			t.Errorf("%s: synchronous_commit is %s, and the isolation %s", mode, durable, isolation)
		}
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"SELECT ?, ?":                    "SELECT $1, $2",
		"SELECT ?2, ?1, ?":               "SELECT $2, $1, $3",
		"SELECT ?1, ?1, ?":               "SELECT $1, $1, $2",
		"SELECT 'what?', 'it''s?', ?":    "SELECT 'what?', 'it''s?', $1",
		"SELECT ?10, ?":                  "SELECT $10, $11",
		"VALUES (?, ?) -- and ?1":        "VALUES ($1, $2) -- and $1",
		"SELECT CAST(? AS BIGINT) = ?1":  "SELECT CAST($1 AS BIGINT) = $1",
		"SELECT 1 WHERE name = 'a' || ?": "SELECT 1 WHERE name = 'a' || $1",
	} {
		if got := postgres.Placeholders(query); got != want {
			t.Errorf("%s became %s", query, got)
		}
	}
}
