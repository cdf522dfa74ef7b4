// Package schema has the journal's schema, which is written once for both engines. It updates the schema of a store, and
// reads what tables and ids a store has.
package schema

import (
	"fmt"
	"strings"
	"time"

	"parley/ingest/journal/storage"
)

// Migrate runs the steps that a database still needs. They are numbered 1, 2, 3 and so on. The
// caller has begun a transaction, which contains all of them. exec runs a statement, or several
// without arguments. number and exists are those of Needs. Migrate creates the table only if it is
// missing, so with a current schema a daemon needs no right to do so.
func Migrate(steps []Step, exists string, exec func(query string, args ...any) error, number func(query string) (int64, error)) error {
	needs, err := Needs(steps, exists, number)
	if err != nil {
		return err
	}
	if needs.From == 0 {
		if err := exec(`CREATE TABLE IF NOT EXISTS schema_migrations (version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`); err != nil {
			return fmt.Errorf("prepare the schema: %w", err)
		}
	}
	for i, step := range steps[needs.From:] {
		version := needs.From + int64(i) + 1
		if !strings.HasPrefix(step.Name, fmt.Sprintf("%04d_", version)) {
			return fmt.Errorf("%s does not have the number %04d; a step is named NNNN_words.sql", step.Name, version)
		}
		err := exec(step.Text)
		if err == nil {
			err = exec(`INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, $3)`, version, step.Name, time.Now().Unix())
		}
		if err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
	}
	return nil
}

// Needs returns the steps that a database still needs, of those that this program knows. It refuses a database
// that a newer program wrote. number runs a query for one number. exists is such a query: it counts the tables
// named schema_migrations.
func Needs(steps []Step, exists string, number func(query string) (int64, error)) (needs storage.Upgrade, err error) {
	if needs.From, err = number(exists); err == nil && needs.From > 0 {
		needs.From, err = number(`SELECT coalesce(max(version), 0) FROM schema_migrations`)
	}
	if err != nil {
		return needs, fmt.Errorf("prepare the schema: %w", err)
	}
	if needs.From > int64(len(steps)) {
		return needs, fmt.Errorf("its schema has version %d and this program knows %d: run the newer program that wrote it, or restore a backup from before",
			needs.From, len(steps))
	}
	for _, step := range steps[needs.From:] {
		needs.Steps = append(needs.Steps, step.Name)
	}
	return needs, nil
}
