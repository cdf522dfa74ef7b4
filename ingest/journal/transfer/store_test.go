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

	"parley/ingest/journal"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/transfer"
)

// store is a kind of store that a test can have an empty one of.
type store struct {
	name string
	open func(t *testing.T) journal.Engine
	// catalogue is a query for the columns of every table: its name, the column's,
	// its type, whether it can't be null, and whether it is in the primary key.
	catalogue string
}

var embedded = store{"sqlite", func(t *testing.T) journal.Engine {
	t.Helper()
	engine, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "parley.db"))
	return opened(t, engine, err)
}, `SELECT m.name, c.name, c.type, c."notnull" + 0, c.pk FROM sqlite_schema m, pragma_table_info(m.name) c
	WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`}

var shared = store{"postgres", func(t *testing.T) journal.Engine {
	t.Helper()
	engine, err := postgres.Open(t.Context(), postgres.Options{URL: postgrestest.URL(t), Connections: 4})
	return opened(t, engine, err)
}, `SELECT CAST(k.relname AS TEXT), CAST(a.attname AS TEXT), format_type(a.atttypid, NULL), a.attnotnull,
	EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = k.oid AND i.indisprimary AND a.attnum = ANY (i.indkey))
	FROM pg_class k JOIN pg_attribute a ON a.attrelid = k.oid
	WHERE k.relkind = 'r' AND k.relnamespace = CAST(current_schema() AS regnamespace) AND a.attnum > 0 AND NOT a.attisdropped`}

func opened(t *testing.T, engine journal.Engine, err error) journal.Engine {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// tester is a *testing.T, or a property's.
type tester interface {
	Helper()
	Context() context.Context
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// schema are the columns of a store, by table.
type schema map[string]map[string]transfer.Column

// schema asks the engine itself.
func (s store) schema(t *testing.T, engine journal.Engine) schema {
	t.Helper()
	kinds := map[string]string{"INTEGER": "int", "TEXT": "text", "BLOB": "bytes", "bigint": "int", "text": "text", "bytea": "bytes"}
	found := schema{}
	query(t, engine, s.catalogue, func(scan func(...any) error) error {
		var table, column, kind string
		var required, key bool
		err := scan(&table, &column, &kind, &required, &key)
		if found[table] == nil {
			found[table] = map[string]transfer.Column{}
		}
		found[table][column] = transfer.Column{Kind: kinds[kind], Nullable: !required && !key, Key: key}
		return err
	})
	for _, table := range transfer.Left() {
		delete(found, table)
	}
	return found
}

// tables are the tables in some order that is always the same.
func (s schema) tables() []string { return slices.Sorted(maps.Keys(s)) }

// columns are a table's columns likewise.
func (s schema) columns(table string) []string { return slices.Sorted(maps.Keys(s[table])) }

func query(t tester, engine journal.Engine, query string, each func(scan func(...any) error) error) {
	t.Helper()
	if err := engine.Read(t.Context(), func(tx journal.Tx) error { return tx.Rows(each, query) }); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func exec(t tester, engine journal.Engine, query string, args ...any) {
	t.Helper()
	err := engine.Write(t.Context(), func(tx journal.Tx) error {
		_, err := tx.Exec(query, args...)
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// line is a row to be, and the table that it goes to.
type line struct {
	table  string
	values []any // by the schema's columns
}

// Values that are easily mixed up or cut short, and others.
var (
	numbers = rapid.OneOf(rapid.Int64Range(0, 6), rapid.SampledFrom([]int64{-1, 1<<63 - 1, -1 << 63, 1 << 53}), rapid.Int64())
	texts   = rapid.Map(rapid.OneOf(rapid.SampledFrom([]string{"", "0", "null", "a'b\"c\\", "é", "e\u0301", "\u202e\U0001f469\u200d\U0001f680\ufeff", "\uffff", " \t\r\n"}), rapid.String()),
		func(s string) string { return strings.ReplaceAll(s, "\x00", "") })
	blobs = rapid.OneOf(rapid.SampledFrom([][]byte{{}, {0}, []byte("null"), {0xff, 0xfe, 0}}), rapid.SliceOf(rapid.Byte()))
)

// value draws a value of a column. A store that is copied is out of use, and no
// fence is near its end.
func value(t *rapid.T, name string, c transfer.Column) any {
	switch {
	case name == "lease_until" || name == "fence":
		return rapid.Int64Range(0, 1000).Draw(t, name)
	case c.Nullable && rapid.Bool().Draw(t, "null"):
		return nil
	case c.Kind == "int":
		return numbers.Draw(t, name)
	case c.Kind == "text":
		return texts.Draw(t, name)
	}
	return blobs.Draw(t, name)
}

// lines draws up to so many rows for each table.
func (s schema) lines(most int) *rapid.Generator[[]line] {
	return rapid.Custom(func(t *rapid.T) []line {
		var made []line
		for _, table := range s.tables() {
			for range rapid.IntRange(0, most).Draw(t, table) {
				l := line{table: table}
				for _, name := range s.columns(table) {
					l.values = append(l.values, value(t, name, s[table][name]))
				}
				made = append(made, l)
			}
		}
		return made
	})
}

// fill writes rows, except those whose key is taken already.
func (s schema) fill(t tester, engine journal.Engine, lines []line) {
	t.Helper()
	err := engine.Write(t.Context(), func(tx journal.Tx) error {
		for _, l := range lines {
			columns := s.columns(l.table)
			err := tx.Later(nil, nil, "INSERT INTO "+l.table+" ("+strings.Join(columns, ", ")+") VALUES ("+
				strings.Repeat(", ?", len(columns))[2:]+") ON CONFLICT DO NOTHING", l.values...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("fill: %v", err)
	}
}

// empty makes a store as it was when it was opened.
func (s schema) empty(t tester, engine journal.Engine) {
	t.Helper()
	err := engine.Write(t.Context(), func(tx journal.Tx) error {
		for _, table := range append(s.tables(), "holds") {
			if err := tx.Later(nil, nil, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("empty: %v", err)
	}
}

// dump is all that a store holds, or what a copy of it must hold.
func (s schema) dump(t tester, engine journal.Engine, copied bool) []string {
	t.Helper()
	var all []string
	for _, table := range s.tables() {
		columns := s.columns(table)
		list := make([]string, len(columns))
		for i, name := range columns {
			list[i] = name + ", CASE WHEN " + name + " IS NULL THEN 1 ELSE 0 END"
		}
		where := ""
		if table == "cursors" {
			where = " WHERE workspace <> '' OR channel NOT IN ('store/identity', 'store/copying', 'store/copied')"
		}
		query(t, engine, "SELECT "+strings.Join(list, ", ")+" FROM "+table+where, func(scan func(...any) error) error {
			shown, err := s.show(table, columns, copied, scan)
			all = append(all, shown)
			return err
		})
	}
	slices.Sort(all)
	return all
}

// show is one row in words.
func (s schema) show(table string, columns []string, copied bool, scan func(...any) error) (string, error) {
	dest := make([]any, 0, 2*len(columns))
	for _, name := range columns {
		switch s[table][name].Kind {
		case "int":
			dest = append(dest, new(int64), new(bool))
		case "text":
			dest = append(dest, new(string), new(bool))
		default:
			dest = append(dest, new([]byte), new(bool))
		}
	}
	err := scan(dest...)
	words := []string{table}
	for i, name := range columns {
		word := "null"
		if !*dest[2*i+1].(*bool) {
			word = display(dest[2*i], copied && table == "threads", name)
		}
		words = append(words, name+"="+word)
	}
	return strings.Join(words, " "), err
}

// display is a value in words. A copied thread belongs to nobody, and has
// another fence.
func display(value any, thread bool, name string) string {
	switch value := value.(type) {
	case *int64:
		switch {
		case thread && name == "lease_until":
			return "0"
		case thread && name == "fence":
			return fmt.Sprint(*value + 1)
		}
		return fmt.Sprint(*value)
	case *string:
		if thread && name == "owner" {
			return `""`
		}
		return fmt.Sprintf("%q", *value)
	case *[]byte:
		return fmt.Sprintf("%x", *value)
	}
	return "?"
}
