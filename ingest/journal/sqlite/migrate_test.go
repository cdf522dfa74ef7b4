package sqlite_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/ingest/journal/sqlite"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/storage/schema"
)

// further returns the scratch schema with further steps.
func further(texts ...string) sqlite.Option {
	steps := []schema.Step{scratch}
	for i, text := range texts {
		steps = append(steps, schema.Step{Name: fmt.Sprintf("%04d_step.sql", i+2), Text: text})
	}
	return sqlite.WithSteps(steps...)
}

// versions returns the contents of schema_migrations.
func versions(t *testing.T, e storage.Engine) (out []int64) {
	t.Helper()
	if err := e.Read(t.Context(), func(tx storage.Tx) error {
		return tx.Rows(func(scan func(...any) error) error {
			var version int64
			defer func() { out = append(out, version) }()
			return scan(&version)
		}, "SELECT version FROM schema_migrations ORDER BY version")
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// refused opens path and returns the error's text.
func refused(t *testing.T, path string, opts ...sqlite.Option) string {
	t.Helper()
	e, err := sqlite.Open(t.Context(), path, sqlite.With(opts...))
	if err == nil {
		t.Fatal("opened", e.Close())
	}
	return err.Error()
}

func TestOpenAppliesNewSteps(t *testing.T) {
	path := file(t)
	e := open(t, path)
	write(t, e, insert("old"))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	rename := "ALTER TABLE facts ADD COLUMN seen INTEGER; UPDATE facts SET name = name || ' and new';"
	for range 2 { // the second open has nothing to do
		e := open(t, path, further(rename))
		if diff := cmp.Diff([]string{"old and new"}, names(t, e)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]int64{1, 2}, versions(t, e)); diff != "" {
			t.Error(diff)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestANewerDatabaseIsRefused(t *testing.T) {
	path := file(t)
	if err := open(t, path, further("CREATE TABLE more (id INTEGER)")).Close(); err != nil {
		t.Fatal(err)
	}
	words := refused(t, path, further())
	for _, word := range []string{path, "version 2", "knows 1", "newer program"} {
		if !strings.Contains(words, word) {
			t.Errorf("the error %q lacks %q", words, word)
		}
	}
	if _, err := sqlite.Check(t.Context(), path, sqlite.With(further())); err == nil || !strings.Contains(words, err.Error()) {
		t.Errorf("the check says %v", err)
	}
}

func TestAnotherProgramsDatabaseIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chat.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE message (text TEXT)"); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	words := refused(t, path)
	if !strings.Contains(words, path) {
		t.Errorf("the error %q lacks the path", words)
	}
	if _, err := sqlite.Check(t.Context(), path, sqlite.Options{}); err == nil || !strings.Contains(words, err.Error()) {
		t.Errorf("the check says %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file changed, or %v", err)
	}
}

func TestAFailedStepCanBeRepeated(t *testing.T) {
	path := file(t)
	words := refused(t, path, further("CREATE TABLE more (id INTEGER); INSERT INTO nowhere VALUES (1);"))
	if !strings.Contains(words, "0002_step.sql") || !strings.Contains(words, "nowhere") {
		t.Errorf("%q does not name the step and its fault", words)
	}
	e := open(t, path, further("CREATE TABLE more (id INTEGER)"))
	if diff := cmp.Diff([]int64{1, 2}, versions(t, e)); diff != "" {
		t.Error(diff)
	}
}

func TestAMisnumberedStepIsRefused(t *testing.T) {
	for name, want := range map[string]string{"0003_gap.sql": "number 0002", "2_short.sql": "NNNN_words.sql"} {
		if words := refused(t, file(t), sqlite.WithSteps(scratch, schema.Step{Name: name, Text: "SELECT 1"})); !strings.Contains(words, want) {
			t.Errorf("the error %q lacks %q", words, want)
		}
	}
}

func TestAKilledMigrationIsRepeated(t *testing.T) {
	fs, path := faulty(t), file(t)
	steps := further("CREATE TABLE a (id INTEGER); CREATE TABLE b (id INTEGER);", "DROP TABLE a;")
	if err := open(t, path, steps, sqlite.WithVFS(fs.Name)).Close(); err != nil {
		t.Fatal(err)
	}
	end := fs.Position()
	for position := range end {
		killed := fs.PowerLoss(position, func() bool { return true })
		e := restore(t, path, killed, steps)
		if diff := cmp.Diff([]int64{1, 2, 3}, versions(t, e)); diff != "" {
			t.Errorf("killed at %d of %d: %s", position, end, diff)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestTheJournalsSchemaIsApplied(t *testing.T) {
	e, err := sqlite.Open(t.Context(), file(t), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	if len(versions(t, e)) == 0 {
		t.Error("there are no migrations")
	}
}
