package postgres_test

import (
	"strings"
	"testing"

	"parley/ingest/journal/postgres"
	"parley/ingest/journal/storage"
)

// TestWordScan checks that PostgreSQL scans the rows with the words of a query backward, so that a page of common words is short work.
func TestWordScan(t *testing.T) {
	t.Parallel()
	e := engine(t, postgres.Options{URL: database(t)})
	var found []int64
	var plan []string
	err := e.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		found, plan = nil, nil
		if _, err := tx.Exec(`INSERT INTO search_words (rowid, words) SELECT n, CAST('one two w' || n AS tsvector) FROM generate_series(1, 20000) n`); err != nil {
			return err
		}
		if _, err := tx.Exec(`ANALYZE search_words`); err != nil {
			return err
		}
		query := `SELECT rowid FROM ` + e.WordScan() + ` WHERE rowid < $2 ORDER BY rowid DESC LIMIT 2`
		for _, words := range []string{"two one", "w7 one", "three"} {
			err := tx.Rows(func(scan func(...any) error) error {
				var row int64
				err := scan(&row)
				found = append(found, row)
				return err
			}, query, words, int64(1)<<62)
			if err != nil {
				return err
			}
		}
		return tx.Rows(func(scan func(...any) error) error {
			var line string
			err := scan(&line)
			plan = append(plan, line)
			return err
		}, `EXPLAIN `+strings.NewReplacer("$1", "'two one'", "$2", "1000000").Replace(query))
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 3 || found[0] != 20_000 || found[1] != 19_999 || found[2] != 7 {
		t.Errorf("found %v", found)
	}
	if words := strings.Join(plan, "\n"); !strings.Contains(words, "Index Scan Backward using search_words_pkey") {
		t.Error(words)
	}
}
