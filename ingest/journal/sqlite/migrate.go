package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
)

// migration is one step of the schema.
type migration struct {
	version int64
	name    string
	script  string
}

// migrate brings the schema up to date. Each step is one transaction together
// with its row in schema_migrations, so that a process that is killed in between
// begins again where it was. A database that a newer program wrote is refused.
func migrate(ctx context.Context, c *conn, file string, files fs.FS) error {
	steps, err := migrations(files)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	const table = `CREATE TABLE IF NOT EXISTS schema_migrations (
		version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT`
	if err := c.run(table); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var have int64
	if _, err := c.row([]any{&have}, "SELECT max(version) FROM schema_migrations"); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if have > int64(len(steps)) {
		return fmt.Errorf("%s: its schema has version %d and this program knows %d: run the newer program that wrote it, or restore a backup from before",
			file, have, len(steps))
	}
	for _, step := range steps[have:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := apply(c, step); err != nil {
			return fmt.Errorf("%s: migration %s: %w", file, step.name, err)
		}
	}
	return nil
}

func apply(c *conn, step migration) error {
	if err := c.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := c.script(step.script)
	if err == nil {
		err = c.run("INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, unixepoch())", step.version, step.name)
	}
	if err == nil {
		err = c.run("COMMIT")
	}
	if err != nil && !c.clean() {
		return errors.Join(err, errors.New("the transaction could not be rolled back"))
	}
	return err
}

// migrations reads the steps in order; their numbers are 1, 2, 3 and so on.
func migrations(files fs.FS) ([]migration, error) {
	names, err := fs.Glob(files, "*.sql") // sorted
	if err != nil {
		return nil, err
	}
	numbered := regexp.MustCompile(`^(\d{4})_[a-z0-9_]+\.sql$`)
	var steps []migration
	for i, name := range names {
		match := numbered.FindStringSubmatch(path.Base(name))
		if match == nil {
			return nil, fmt.Errorf("%s is not named NNNN_words.sql", name)
		}
		version, err := strconv.Atoi(match[1])
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("%s stands where number %04d should", name, i+1)
		}
		script, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		steps = append(steps, migration{int64(version), name, string(script)})
	}
	return steps, nil
}
