package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"parley/ingest/journal/internal/schema"
)

// migrate brings the schema up to date. Each step is one transaction together
// with its row in schema_migrations, so that a process that is killed in between
// begins again where it was. A database that a newer program wrote is refused.
func migrate(ctx context.Context, c *conn, file string, files fs.FS) error {
	steps, err := schema.Steps(files)
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
	missing, err := schema.Missing(steps, have)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, step := range missing {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := apply(c, step); err != nil {
			return fmt.Errorf("%s: migration %s: %w", file, step.Name, err)
		}
	}
	return nil
}

func apply(c *conn, step schema.Step) error {
	if err := c.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := c.script(step.Script)
	if err == nil {
		err = c.run("INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, unixepoch())", step.Version, step.Name)
	}
	if err == nil {
		err = c.run("COMMIT")
	}
	if err != nil && !c.clean() {
		return errors.Join(err, errors.New("the transaction could not be rolled back"))
	}
	return err
}
