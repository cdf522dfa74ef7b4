package sqlite_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/storage"
)

// TestTables reads a table whose key has another order than its columns.
func TestTables(t *testing.T) {
	e := open(t, file(t), further(`CREATE TABLE odd (n INTEGER, gone TEXT, body BLOB NOT NULL, second TEXT, first INTEGER, PRIMARY KEY (first, second)) STRICT, WITHOUT ROWID;
		CREATE UNIQUE INDEX odd_n ON odd (n); ALTER TABLE odd DROP COLUMN gone; ALTER TABLE odd ADD COLUMN later REAL`))
	var odd []storage.Table
	if err := e.Read(t.Context(), func(tx storage.Tx) error {
		all, err := tx.Tables()
		odd = slices.DeleteFunc(all, func(table storage.Table) bool { return table.Name != "odd" })
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := []storage.Table{{Name: "odd", Key: 2, Columns: []storage.Column{{Name: "first", Type: "INTEGER"}, {Name: "second", Type: "TEXT"},
		{Name: "n", Type: "INTEGER", Null: true}, {Name: "body", Type: "BLOB"}, {Name: "later", Type: "REAL", Null: true}}}}
	if diff := cmp.Diff(want, odd); diff != "" {
		t.Error(diff)
	}
}
