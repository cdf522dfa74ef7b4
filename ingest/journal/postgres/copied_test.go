package postgres_test

import (
	"testing"

	"parley/ingest/journal"
	"parley/ingest/journal/postgres"
	"parley/ingest/journal/postgres/postgrestest"
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

// TestAnEmptyTextIsNotNull as the first argument that a connection ever binds.
func TestAnEmptyTextIsNotNull(t *testing.T) {
	t.Parallel()
	var null bool
	err := open(t).Read(t.Context(), func(tx journal.Tx) error {
		_, err := tx.Row([]any{&null}, `SELECT CASE WHEN CAST(? AS TEXT) IS NULL THEN 1 ELSE 0 END`, "")
		return err
	})
	if err != nil || null {
		t.Errorf("an empty text is NULL: %v, %v", null, err)
	}
}

// TestRenumber holds that a new row's id follows those that were given.
func TestRenumber(t *testing.T) {
	t.Parallel()
	engine := open(t)
	const columns = "(external_id, message, part, name, mime_type, size, state"
	var next int64
	err := engine.Write(t.Context(), func(tx journal.Tx) error {
		_, err := tx.Exec(`INSERT INTO attachments `+columns+`, id) VALUES ('', 1, 1, '', '', 0, '', ?)`, int64(41))
		return err
	})
	if err == nil {
		err = engine.Renumber(t.Context())
	}
	if err == nil {
		err = engine.Write(t.Context(), func(tx journal.Tx) error {
			_, err := tx.Row([]any{&next}, `INSERT INTO attachments `+columns+`) VALUES ('', 1, 2, '', '', 0, '') RETURNING id`)
			return err
		})
	}
	if err != nil || next != 42 {
		t.Errorf("the next id is %d, %v", next, err)
	}
}
