package sqlite

import (
	"context"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

// LastIDs returns the highest id that a row of each table ever had.
func (e *Engine) LastIDs(ctx context.Context) (map[string]int64, error) {
	return schema.LastIDs(ctx, e, `SELECT name, seq FROM sqlite_sequence`)
}

// SkipIDs makes each table's next id higher than the given one. SQLite itself ensures
// that it is higher than the ids of the rows.
func (e *Engine) SkipIDs(ctx context.Context, last map[string]int64) error {
	return e.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		for table, id := range last {
			changed, err := tx.Exec(`UPDATE sqlite_sequence SET seq = max(seq, $1) WHERE name = $2`, id, table)
			if err == nil && changed == 0 {
				_, err = tx.Exec(`INSERT INTO sqlite_sequence (name, seq) VALUES ($2, $1)`, id, table)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
