package strangers_test

import (
	"testing"

	"parley/ingest/journal/journaltest"
)

func TestSQLite(t *testing.T) { journaltest.SQLite(t, "strangers") }
