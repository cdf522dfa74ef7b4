package schema

import "parley/ingest/journal"

// LastIDs runs a query for a table's name and its last id, one row for each table.
func LastIDs(tx journal.Tx, query string) (map[string]int64, error) {
	last := map[string]int64{}
	err := tx.Rows(func(scan func(...any) error) error {
		var table string
		var id int64
		err := scan(&table, &id)
		last[table] = id
		return err
	}, query)
	return last, err
}
