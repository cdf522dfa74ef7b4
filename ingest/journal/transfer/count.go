package transfer

import "parley/ingest/journal/storage"

// Count returns the number of rows in each table of the journal. It reads them all.
func Count(tx storage.Tx) (rows map[string]int64, err error) {
	rows = map[string]int64{}
	for _, t := range tables {
		var n int64
		if _, err := tx.Row([]any{&n}, "SELECT count(*) FROM "+t.name); err != nil {
			return nil, err
		}
		rows[t.name] = n
	}
	return rows, nil
}
