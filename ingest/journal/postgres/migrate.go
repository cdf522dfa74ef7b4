package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"parley/ingest/journal/internal/schema"
)

//go:embed migrations/*.sql
var embedded embed.FS

// oldestServer is the first version that has all that is used here.
const oldestServer = 140000

// migrationLock is the key of the advisory lock under which the schema is changed.
// It is held by the transaction, so that it works through a pooler too.
const migrationLock = 0x7061726c6579 // "parley"

// prepare checks the server and applies the migrations. Nodes that start at the
// same time wait for one another.
func prepare(ctx context.Context, config *pgx.ConnConfig) (err error) {
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	if err := check(ctx, c); err != nil {
		return err
	}
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return err
	}
	steps, err := schema.Steps(files)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	// What others did while this one waited for the lock must be seen.
	committed := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	return pgx.BeginTxFunc(ctx, c, committed, func(tx pgx.Tx) error { return migrate(ctx, tx, steps) })
}

// check refuses a server that can't keep the journal.
func check(ctx context.Context, c *pgx.Conn) error {
	var version int
	var encoding string
	if err := c.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding')`).Scan(&version, &encoding); err != nil {
		return err
	}
	if version < oldestServer {
		return fmt.Errorf("the server has version %d.%d; %d or newer is needed", version/10000, version%10000, oldestServer/10000)
	}
	if encoding != "UTF8" {
		return fmt.Errorf("the database has the encoding %s; make one with ENCODING 'UTF8' (and TEMPLATE template0)", encoding)
	}
	return nil
}

// migrate applies the steps that are missing, all in one transaction.
func migrate(ctx context.Context, tx pgx.Tx, steps []schema.Step) error {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
		return fmt.Errorf("wait for the schema: %w", err)
	}
	have, err := version(ctx, tx)
	if err != nil {
		return err
	}
	missing, err := schema.Missing(steps, have)
	if err != nil {
		return err
	}
	for _, step := range missing {
		if _, err := tx.Exec(ctx, step.Script); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
		if _, err := tx.Exec(ctx, `INSERT INTO schema_migrations (version, name, applied_at)
			VALUES ($1, $2, extract(epoch FROM now())::bigint)`, step.Version, step.Name); err != nil {
			return fmt.Errorf("migration %s: %w", step.Name, err)
		}
	}
	return nil
}

// version is that of the schema; 0 in an empty database. The table is made only
// where it is missing: a node whose schema is up to date needs no right to make one.
func version(ctx context.Context, tx pgx.Tx) (have int64, err error) {
	var exists bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass('schema_migrations') IS NOT NULL`).Scan(&exists); err != nil {
		return 0, err
	}
	if !exists {
		_, err := tx.Exec(ctx, `CREATE TABLE schema_migrations (version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`)
		return 0, err
	}
	err = tx.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM schema_migrations`).Scan(&have)
	return have, err
}
