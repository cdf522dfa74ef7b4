package transfer

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

// table is one table of a store.
type table storage.Table

// left are the tables that are not copied: nodes' exclusive leases, the marker of an unfinished copy, and the index of
// words, which the new store makes from the messages.
var left = []string{"exclusive_leases", "unfinished_copy", "search_words", "search_changes", "search_progress", "search_people"}

// names returns the names of the copied tables, in the order in which the schema makes them.
func names() []string {
	return slices.DeleteFunc(schema.Tables(), func(name string) bool { return slices.Contains(left, name) })
}

// read returns the tables of a store that are copied, in the order of names. A store with an older schema may lack some.
func read(tx storage.Tx) (tables []table, err error) {
	has, err := tx.Tables()
	for _, name := range names() {
		if i := slices.IndexFunc(has, func(t storage.Table) bool { return t.Name == name }); i >= 0 {
			tables = append(tables, table(has[i]))
		}
	}
	return tables, err
}

// same returns the tables that are copied. It fails unless both stores have all of them with the same columns.
func same(ctx context.Context, from, to Store) ([]table, error) {
	var both [2][]table
	for i, store := range []Store{from, to} {
		if err := store.ReadOne(ctx, func(tx storage.Tx) (err error) { both[i], err = read(tx); return err }); err != nil {
			return nil, fmt.Errorf("read the tables of %s: %w", []string{"FROM", "TO"}[i], err)
		}
	}
	for i, name := range names() {
		if i >= min(len(both[0]), len(both[1])) || both[0][i].Name != name || !reflect.DeepEqual(both[0][i], both[1][i]) {
			return nil, fmt.Errorf("the table %s does not have the same columns in FROM and TO: both stores need the schema of this program, without changes by others", name)
		}
	}
	return both[0], nil
}

// list returns the first n columns as an SQL list.
func (t table) list(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = t.Columns[i].Name
	}
	return strings.Join(list, ", ")
}

// insert returns the statement that writes one row.
func (t table) insert() string {
	n := len(t.Columns)
	return "INSERT INTO " + t.Name + " (" + t.list(n) + ") VALUES (" + placeholders(n) + ")"
}

// size returns the expression for the number of bytes in a row's texts and blobs.
func (t table) size() string {
	sizes := []string{"CAST(0 AS BIGINT)"}
	for _, c := range t.Columns {
		if c.Type != "INTEGER" {
			sizes = append(sizes, "coalesce(octet_length("+c.Name+"), 0)")
		}
	}
	return strings.Join(sizes, " + ")
}

// following returns the end of a SELECT for the rows after a primary key (nil: for
// the first rows), and its arguments. The caller adds the greatest number of rows as
// the last argument.
func (t table) following(after row) (end string, args []any) {
	keys := t.list(t.Key)
	if after != nil {
		end = " WHERE (" + keys + ") > (" + placeholders(t.Key) + ")"
	}
	return fmt.Sprintf(" FROM %s%s ORDER BY %s LIMIT CAST($%d AS BIGINT)", t.Name, end, keys, len(after)+1), slices.Clip(after)
}

// placeholders returns $1, $2 … for n arguments.
func placeholders(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(list, ", ")
}
