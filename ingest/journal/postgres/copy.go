package postgres

import (
	"context"
	"fmt"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

// LastIDs returns the last id that each table's sequence gave to a row.
func (e *Engine) LastIDs(ctx context.Context) (map[string]int64, error) {
	return schema.LastIDs(ctx, e, `SELECT CAST(table_name AS TEXT), pg_sequence_last_value(CAST(pg_get_serial_sequence(table_name, column_name) AS REGCLASS))
		FROM information_schema.columns WHERE table_schema = current_schema() AND is_identity = 'YES'`)
}

// SkipIDs makes each table's next id higher than the given one and than the ids of
// its rows. The planner counts the rows, so that the first queries of a large copy are as fast as later ones.
func (e *Engine) SkipIDs(ctx context.Context, last map[string]int64) error {
	return e.Write(ctx, storage.WriteOptions{}, func(tx storage.Tx) error {
		for table, id := range last {
			var column string
			if _, err := tx.Row([]any{&column}, `SELECT CAST(column_name AS TEXT) FROM information_schema.columns
				WHERE table_schema = current_schema() AND table_name = $1 AND is_identity = 'YES'`, table); err != nil {
				return err
			}
			query := fmt.Sprintf(`SELECT setval(pg_get_serial_sequence($1, $2), greatest(top, 1), top > 0)
				FROM (SELECT greatest(max(%s), $3) AS top FROM %s) AS ids`, column, table)
			if _, err := tx.Row([]any{&id}, query, table, column, id); err != nil {
				return err
			}
		}
		_, err := tx.Exec(`ANALYZE`)
		return err
	})
}
