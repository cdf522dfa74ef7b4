package schema

import "parley/ingest/journal/storage"

// ReadTables runs a query for the columns of all tables, by table, those of the primary key first, in its order: the
// name of the table, that of the column, its type, 1 if it may be null, and 1 if it is in the primary key.
func ReadTables(tx storage.Tx, query string) (tables []storage.Table, err error) {
	err = tx.Rows(func(scan func(...any) error) error {
		var table string
		var c storage.Column
		var key bool
		err := scan(&table, &c.Name, &c.Type, &c.Null, &key)
		if len(tables) == 0 || tables[len(tables)-1].Name != table {
			tables = append(tables, storage.Table{Name: table})
		}
		t := &tables[len(tables)-1]
		t.Columns = append(t.Columns, c)
		if key {
			t.Key++
		}
		return err
	}, query)
	return tables, err
}
