package rig

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

// Database is a new database on a PostgreSQL server.
type Database struct {
	name, URL string
	// Admin is connected to the database that -postgres names. So cut never ends the
	// tool's own connections.
	Admin *sql.DB
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
func (b *Bench) newDatabase(ctx context.Context, server string) (*Database, error) {
	address, err := url.Parse(server)
	if err != nil || address.Scheme != "postgres" && address.Scheme != "postgresql" {
		return nil, command.UsageError{Err: errors.New("postgres must be a URL such as postgres://user@host/postgres")}
	}
	d := &Database{name: fmt.Sprintf("parley_bench_%08x", rand.Uint32())}
	if d.Admin, err = openDatabase(server); err != nil {
		return nil, err
	}
	b.OnClose(d.Admin.Close)
	address.Path = "/" + d.name
	d.URL = address.String()
	making, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	if _, err := d.Admin.ExecContext(making, "CREATE DATABASE "+d.name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	b.OnClose(func() error {
		if b.keep {
			b.Printf("kept: database %s\n", d.name)
			return nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), adminTimeout)
		defer cancel()
		if _, err := d.Admin.ExecContext(ctx, "DROP DATABASE "+d.name+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("drop the database: %w", err)
		}
		return nil
	})
	return d, nil
}

// Cut terminates a random connection to the database. It returns false if there was none.
func (d *Database) Cut(ctx context.Context) (found bool, err error) {
	err = d.Admin.QueryRowContext(ctx, `WITH victim AS MATERIALIZED (
			SELECT pid FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend' ORDER BY random() LIMIT 1)
		SELECT pg_terminate_backend(pid) FROM victim`, d.name).Scan(&found)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("terminate a connection: %w", err)
	}
	return found, nil
}
