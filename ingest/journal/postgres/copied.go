package postgres

import (
	"context"
	"fmt"

	"parley/ingest/journal"
)

// Storable is a text as the database keeps it: U+0000 and what is not UTF-8
// become U+FFFD.
func (e *Engine) Storable(text string) string { return storable(text) }

// Renumber makes the next id of every table follow the highest one there is, once
// rows have been written with ids of their own.
func (e *Engine) Renumber(ctx context.Context) error {
	err := e.Write(ctx, func(tx journal.Tx) error {
		var identities [][2]string
		err := tx.Rows(func(scan func(...any) error) error {
			var table, column string
			err := scan(&table, &column)
			identities = append(identities, [2]string{table, column})
			return err
		}, `SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT) FROM information_schema.columns
			WHERE table_schema = current_schema() AND is_identity = 'YES'`)
		if err != nil {
			return err
		}
		for _, identity := range identities {
			table, column := identity[0], identity[1]
			query := fmt.Sprintf(`SELECT setval(pg_get_serial_sequence(?, ?), greatest(coalesce(max(%[1]s), 0), 1), coalesce(max(%[1]s), 0) > 0) FROM %[2]s`, column, table)
			var last int64
			if _, err := tx.Row([]any{&last}, query, table, column); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("renumber: %w", err)
	}
	return nil
}
