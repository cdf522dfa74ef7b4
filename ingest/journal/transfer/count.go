package transfer

import "parley/ingest/journal/storage"

// Count returns the number of rows in each copied table that the store has. It reads them all.
func Count(tx storage.Tx) (rows map[string]int64, err error) {
	rows = map[string]int64{}
	tables, err := read(tx)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		var n int64
		if _, err := tx.Row([]any{&n}, "SELECT count(*) FROM "+t.Name); err != nil {
			return nil, err
		}
		rows[t.Name] = n
	}
	return rows, nil
}
