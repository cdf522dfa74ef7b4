package postgres

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"parley/ingest/journal/internal/schema"
	"parley/ingest/journal/storage"
)

//go:embed migrations/*.sql
var embedded embed.FS

// oldestServer is the oldest supported version of the server.
const oldestServer = 140000

// migrationLock is the key of the advisory lock that guards changes of the schema. The
// transaction holds the lock, so that it works through a pooler too.
const migrationLock = 0x7061726c6579 // "parley"

// Check returns an error if Open could not connect to the server, or would refuse it. It
// changes nothing. It returns what Open would do to the schema.
func Check(ctx context.Context, o Options) (storage.Upgrade, error) {
	config, err := parse(o.URL)
	if err != nil {
		return storage.Upgrade{}, err
	}
	if _, err := parse(cmp.Or(o.ListenURL, o.URL)); err != nil {
		return storage.Upgrade{}, fmt.Errorf("listen_url: %w", err)
	}
	return applied(ctx, config.ConnConfig)
}

// ErrOtherSchema means that a database needs the program that made it, or a start of the daemon, which updates it.
var ErrOtherSchema = errors.New("the store has another schema")

// keep fails with ErrOtherSchema if the database does not have the schema of this program.
func keep(ctx context.Context, config *pgx.ConnConfig) error {
	u, err := applied(ctx, config)
	switch {
	case err != nil || len(u.Steps) == 0:
		return err
	case u.From == 0:
		return fmt.Errorf("%w: parley run makes it", ErrOtherSchema)
	default:
		return fmt.Errorf("%w: %d, and this program has %d; a start of the newer daemon updates it", ErrOtherSchema, u.From, u.To())
	}
}

// applied returns what Open would do to the schema. It refuses a server that Open would refuse.
func applied(ctx context.Context, config *pgx.ConnConfig) (u storage.Upgrade, err error) {
	c, err := connect(ctx, config)
	if err != nil {
		return u, err
	}
	u, err = schema.Needs(embedded, pattern, exists, numbers(ctx, c))
	return u, errors.Join(err, c.Close(context.WithoutCancel(ctx)))
}

// pattern matches the files of the migrations.
const pattern = "migrations/*.sql"

// exists counts the tables named schema_migrations.
const exists = `SELECT count(to_regclass('schema_migrations'))`

// numbers returns a function that runs a query for one number.
func numbers(ctx context.Context, q interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}) func(query string) (int64, error) {
	return func(query string) (n int64, err error) {
		err = q.QueryRow(ctx, query).Scan(&n)
		return n, err
	}
}

// connect opens a connection to a server that is new enough and has the right encoding.
func connect(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	if err := check(ctx, c); err != nil {
		return nil, errors.Join(err, c.Close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// prepare checks the server and applies the migrations. Nodes that start at the same time
// wait for each other.
func prepare(ctx context.Context, config *pgx.ConnConfig) (err error) {
	c, err := connect(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	// The transaction must see the changes of the nodes that held the lock before.
	committed := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	return pgx.BeginTxFunc(ctx, c, committed, func(tx pgx.Tx) error {
		exec := func(query string, args ...any) error {
			_, err := tx.Exec(ctx, query, args...)
			return err
		}
		if err := exec(`SELECT pg_advisory_xact_lock($1)`, int64(migrationLock)); err != nil {
			return fmt.Errorf("wait for the schema: %w", err)
		}
		return schema.Migrate(embedded, pattern, exists, exec, numbers(ctx, tx))
	})
}

// check returns an error if the server is too old or its encoding is not UTF8.
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
		return fmt.Errorf("the database has the encoding %s; create one with ENCODING 'UTF8' (and TEMPLATE template0)", encoding)
	}
	return nil
}
