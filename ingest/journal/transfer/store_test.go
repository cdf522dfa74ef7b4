package transfer_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/ingest/journal/journaltest"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/transfer"
)

// embedded opens an empty SQLite store.
func embedded(t *testing.T) transfer.Store {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(journaltest.Dir(t), "parley.db"), sqlite.Options{})
	return opened(t, engine, err)
}

// shared opens an empty PostgreSQL store.
func shared(t *testing.T) transfer.Store {
	t.Helper()
	engine, err := postgres.Open(t.Context(), postgres.Options{URL: postgrestest.URL(t), Connections: 4})
	return opened(t, engine, err)
}

func opened(t *testing.T, store transfer.Store, err error) transfer.Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// tester is a *testing.T or a *rapid.T.
type tester interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func query(t tester, store transfer.Store, each func(scan func(...any) error) error, query string) {
	t.Helper()
	if err := store.Read(t.Context(), func(tx storage.Tx) error { return tx.Rows(each, query) }); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func exec(t tester, store transfer.Store, query string, args ...any) {
	t.Helper()
	err := store.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// schema contains the columns of each copied table.
type schema map[string][]storage.Column

// tablesOf reads the schema of a store.
func tablesOf(t tester, store transfer.Store) schema {
	t.Helper()
	found := schema{}
	for _, table := range copiedOf(t, store) {
		found[table.Name] = table.Columns
	}
	return found
}

// copiedOf returns the copied tables of a store, in their order.
func copiedOf(t tester, store transfer.Store) (tables []storage.Table) {
	t.Helper()
	if err := store.Read(t.Context(), func(tx storage.Tx) (err error) { tables, err = transfer.Copied(tx); return err }); err != nil {
		t.Fatalf("read the tables: %v", err)
	}
	return tables
}

// tables returns the names of the tables in a fixed order.
func (s schema) tables() []string { return slices.Sorted(maps.Keys(s)) }

// line is one row of a table.
type line struct {
	table  string
	values []any // in the order of the schema's columns
}

// full returns one row for each table. Its nullable values are null.
func (s schema) full() []line {
	var lines []line
	for _, table := range s.tables() {
		l := line{table: table}
		for _, c := range s[table] {
			value := map[string]any{"INTEGER": int64(1), "TEXT": "text", "BLOB": []byte("bytes")}[c.Type]
			if c.Null {
				value = nil
			}
			l.values = append(l.values, value)
		}
		lines = append(lines, l)
	}
	return lines
}

// Values that are easily confused or truncated, and others.
var (
	numbers = rapid.OneOf(rapid.Int64Range(0, 6), rapid.SampledFrom([]int64{-1, 1<<63 - 1, -1 << 63, 1 << 53}), rapid.Int64())
	texts   = rapid.Map(rapid.OneOf(rapid.SampledFrom([]string{"", "0", "null", "a'b\"c\\", "é", "e\u0301", "\u202e\U0001f469\u200d\U0001f680\ufeff", "\uffff", " \t\r\n"}), rapid.String()),
		func(s string) string { return strings.ReplaceAll(s, "\x00", "") })
	blobs = rapid.OneOf(rapid.SampledFrom([][]byte{{}, {0}, []byte("null"), {0xff, 0xfe, 0}}), rapid.SliceOf(rapid.Byte()))
)

// value draws a value of a column. The lease has ended, and the fence can increase.
func value(t *rapid.T, c storage.Column) any {
	switch {
	case c.Name == "lease_until" || c.Name == "fence":
		return rapid.Int64Range(0, 1000).Draw(t, c.Name)
	case c.Null && rapid.Bool().Draw(t, "null"):
		return nil
	case c.Type == "INTEGER":
		return numbers.Draw(t, c.Name)
	case c.Type == "TEXT":
		return texts.Draw(t, c.Name)
	}
	return blobs.Draw(t, c.Name)
}

// lines draws up to three rows for each table.
func (s schema) lines() *rapid.Generator[[]line] {
	return rapid.Custom(func(t *rapid.T) []line {
		var made []line
		for _, table := range s.tables() {
			for range rapid.IntRange(0, 3).Draw(t, table) {
				l := line{table: table}
				for _, c := range s[table] {
					l.values = append(l.values, value(t, c))
				}
				made = append(made, l)
			}
		}
		return made
	})
}

// insert returns the statement that writes one row.
func insert(table string, columns []storage.Column) string {
	var names, places []string
	for i, c := range columns {
		names, places = append(names, c.Name), append(places, fmt.Sprintf("$%d", i+1))
	}
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(places, ", ") + ")"
}

// fill empties a store and writes rows, except those that break a constraint.
func (s schema) fill(t tester, store transfer.Store, lines []line) {
	t.Helper()
	err := store.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		for _, table := range slices.Backward(append(s.tables(), "exclusive_leases", "unfinished_copy")) { // threads first: a removed message changes its thread's row
			if err := tx.Later(nil, nil, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		for _, l := range lines {
			if err := tx.Later(nil, nil, insert(l.table, s[l.table])+" ON CONFLICT DO NOTHING", l.values...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("fill: %v", err)
	}
}

// dump returns every row of the store as text. If copied is set, claims appear as a copy
// has them: they have ended, and the fence is higher.
func (s schema) dump(t tester, store transfer.Store, copied bool) []string {
	t.Helper()
	var all []string
	for _, table := range s.tables() {
		var list []string
		for _, c := range s[table] {
			list = append(list, c.Name, "CASE WHEN "+c.Name+" IS NULL THEN 1 ELSE 0 END")
		}
		query(t, store, func(scan func(...any) error) error {
			row, err := s.words(table, copied, scan)
			all = append(all, row)
			return err
		}, "SELECT "+strings.Join(list, ", ")+" FROM "+table)
	}
	slices.Sort(all)
	return all
}

// words returns one row as text.
func (s schema) words(table string, copied bool, scan func(...any) error) (string, error) {
	var dest []any
	for _, c := range s[table] {
		dest = append(dest, map[string]any{"INTEGER": new(int64), "TEXT": new(string), "BLOB": new([]byte)}[c.Type], new(bool))
	}
	err := scan(dest...)
	at := func(name string) int {
		return 2 * slices.IndexFunc(s[table], func(c storage.Column) bool { return c.Name == name })
	}
	if copied && table == "threads" {
		if owner := dest[at("owner")].(*string); *owner != "" {
			*owner, *dest[at("lease_until")].(*int64) = "", 0
			*dest[at("fence")].(*int64)++
		}
	}
	words := table
	for i, c := range s[table] {
		word := ""
		switch value := dest[2*i].(type) {
		case *int64:
			word = fmt.Sprint(*value)
		case *string:
			word = fmt.Sprintf("%q", *value)
		case *[]byte:
			word = fmt.Sprintf("%x", *value)
		}
		if *dest[2*i+1].(*bool) {
			word = "null"
		}
		words += " " + c.Name + "=" + word
	}
	return words, err
}
