package postgres_test

import (
	"testing"

	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
	"parley/ingest/journal/storage"
)

func open(t *testing.T) *postgres.Engine {
	t.Helper()
	engine, err := postgres.Open(t.Context(), postgres.Options{URL: postgrestest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// TestAnEmptyTextIsNotNull binds an empty text as the first argument of a connection.
func TestAnEmptyTextIsNotNull(t *testing.T) {
	t.Parallel()
	var null bool
	err := open(t).Read(t.Context(), func(tx storage.Tx) error {
		_, err := tx.Row([]any{&null}, `SELECT CASE WHEN CAST($1 AS TEXT) IS NULL THEN 1 ELSE 0 END`, "")
		return err
	})
	if err != nil || null {
		t.Errorf("the empty text is NULL: %v, %v", null, err)
	}
}

// TestSkipIDs proves that the next id is after the given one, and after the ids of rows
// that were written with their ids.
func TestSkipIDs(t *testing.T) {
	t.Parallel()
	engine := open(t)
	const columns = "(external_id, message, part, name, mime_type, size, state"
	err := engine.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		_, err := tx.Exec(`INSERT INTO attachments ` + columns + `, id) VALUES ('', 1, 1, '', '', 0, '', 41)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, last := range []int64{0, 7, 41, 50} {
		if err := engine.SkipIDs(t.Context(), map[string]int64{"attachments": last}); err != nil {
			t.Fatal(err)
		}
		want := max(last, 41) + 1
		var next int64
		err := engine.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
			if _, err := tx.Row([]any{&next}, `INSERT INTO attachments `+columns+`) VALUES ('', 1, 2, '', '', 0, '') RETURNING id`); err != nil {
				return err
			}
			_, err := tx.Exec(`DELETE FROM attachments WHERE id <> 41`)
			return err
		})
		if err != nil || next != want {
			t.Errorf("next id %d, want %d: %v", next, want, err)
		}
		if ids, err := engine.LastIDs(t.Context()); err != nil || ids["attachments"] != want {
			t.Errorf("LastIDs = %v, %v", ids, err)
		}
	}
	var counted float64
	err = engine.Read(t.Context(), func(tx storage.Tx) error {
		_, err := tx.Row([]any{&counted}, `SELECT CAST(reltuples AS DOUBLE PRECISION) FROM pg_class WHERE oid = CAST('attachments' AS REGCLASS)`)
		return err
	})
	if err != nil || counted < 1 {
		t.Errorf("the planner counts %v attachments, %v", counted, err)
	}
}
