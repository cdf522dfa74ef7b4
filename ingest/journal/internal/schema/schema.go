// Package schema updates an engine's schema, and reads the last ids of its tables.
package schema

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Migrate runs the steps that a database still needs. The files of the steps match
// pattern and are numbered 1, 2, 3 and so on. The caller has begun a transaction, which
// contains all of them. exec runs a statement, or several without arguments. number and
// exists are those of Applied. Migrate creates the table only if it is missing, so with a
// current schema a daemon needs no right to do so.
func Migrate(files fs.FS, pattern, exists string, exec func(query string, args ...any) error, number func(query string) (int64, error)) error {
	names, err := fs.Glob(files, pattern) // sorted
	if err != nil {
		return err
	}
	have, err := Applied(len(names), exists, number)
	if err != nil {
		return err
	}
	if have == 0 {
		if err := exec(`CREATE TABLE IF NOT EXISTS schema_migrations (version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`); err != nil {
			return fmt.Errorf("prepare the schema: %w", err)
		}
	}
	for i, name := range names[have:] {
		version, base := have+int64(i)+1, path.Base(name)
		if !strings.HasPrefix(base, fmt.Sprintf("%04d_", version)) {
			return fmt.Errorf("%s does not have the number %04d; a step is named NNNN_words.sql", base, version)
		}
		script, err := fs.ReadFile(files, name)
		if err == nil {
			err = exec(string(script))
		}
		if err == nil {
			err = exec(`INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, $3)`, version, base, time.Now().Unix())
		}
		if err != nil {
			return fmt.Errorf("migration %s: %w", base, err)
		}
	}
	return nil
}

// Applied returns the number of steps that a database has, of those that this program
// knows. It refuses a database that a newer program wrote. number runs a query for one
// number. exists is such a query: it counts the tables named schema_migrations.
func Applied(known int, exists string, number func(query string) (int64, error)) (have int64, err error) {
	if have, err = number(exists); err == nil && have > 0 {
		have, err = number(`SELECT coalesce(max(version), 0) FROM schema_migrations`)
	}
	if err != nil {
		return 0, fmt.Errorf("prepare the schema: %w", err)
	}
	if have > int64(known) {
		return 0, fmt.Errorf("its schema has version %d and this program knows %d: run the newer program that wrote it, or restore a backup from before",
			have, known)
	}
	return have, nil
}
