package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"parley/cmd/internal/command"
)

// database is a new database on a PostgreSQL server.
type database struct {
	name, url string
	// admin is connected to the database that -postgres names. So cut never ends the
	// tool's own connections.
	admin *sql.DB
}

// adminTimeout bounds a statement that makes or drops a database.
const adminTimeout = time.Minute

func openDatabase(url string) (*sql.DB, error) {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	return db, nil
}

// newDatabase makes a database. The bench's close drops it, unless -keep is set.
func (b *bench) newDatabase(ctx context.Context, server string) (*database, error) {
	address, err := url.Parse(server)
	if err != nil || address.Scheme != "postgres" && address.Scheme != "postgresql" {
		return nil, command.UsageError{Err: errors.New("postgres must be a URL such as postgres://user@host/postgres")}
	}
	d := &database{name: fmt.Sprintf("parley_bench_%08x", rand.Uint32())}
	if d.admin, err = openDatabase(server); err != nil {
		return nil, err
	}
	b.onClose(d.admin.Close)
	address.Path = "/" + d.name
	d.url = address.String()
	making, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	if _, err := d.admin.ExecContext(making, "CREATE DATABASE "+d.name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	b.onClose(func() error {
		if b.keep {
			b.printf("kept: database %s\n", d.name)
			return nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adminTimeout)
		defer cancel()
		if _, err := d.admin.ExecContext(ctx, "DROP DATABASE "+d.name+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("drop the database: %w", err)
		}
		return nil
	})
	return d, nil
}

// cut terminates a random connection to the database. It returns false if there was none.
func (d *database) cut(ctx context.Context) (found bool, err error) {
	err = d.admin.QueryRowContext(ctx, `WITH victim AS MATERIALIZED (
			SELECT pid FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend' ORDER BY random() LIMIT 1)
		SELECT pg_terminate_backend(pid) FROM victim`, d.name).Scan(&found)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("terminate a connection: %w", err)
	}
	return found, nil
}
