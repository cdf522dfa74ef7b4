package schema

import (
	"context"

	"parley/ingest/journal/storage"
)

// LastIDs runs a query for a table's name and its last id, one row for each table.
func LastIDs(ctx context.Context, engine storage.Engine, query string) (last map[string]int64, err error) {
	err = engine.Read(ctx, func(tx storage.Tx) error {
		last = map[string]int64{} // again, if the engine repeats the read
		return tx.Rows(func(scan func(...any) error) error {
			var table string
			var id int64
			err := scan(&table, &id)
			last[table] = id
			return err
		}, query)
	})
	return last, err
}
