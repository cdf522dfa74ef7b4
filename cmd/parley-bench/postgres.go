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
)

// database is one of the tool's own on a PostgreSQL server.
type database struct {
	name string
	url  string
	// admin is connected to the database that -postgres names, so that the tool
	// is no client of this one.
	admin *sql.DB
	// postmaster is the server's first process; 0 where it is not on this machine.
	postmaster int
}

// serverPatience bounds a statement that makes or drops a database.
const serverPatience = time.Minute

// newDatabase makes a database that close drops.
func (b *bench) newDatabase(ctx context.Context, server string) (*database, error) {
	address, err := url.Parse(server)
	if err != nil || address.Scheme != "postgres" && address.Scheme != "postgresql" {
		return nil, usageError{errors.New("postgres must be a URL such as postgres://user@host/postgres")}
	}
	d := &database{name: fmt.Sprintf("parley_bench_%08x", rand.Uint32())}
	if d.admin, err = sql.Open("pgx", server); err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	address.Path = "/" + d.name
	d.url = address.String()
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	if _, err := d.admin.ExecContext(ctx, "CREATE DATABASE "+d.name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		return nil, errors.Join(fmt.Errorf("make a database: %w", err), d.admin.Close())
	}
	b.databases = append(b.databases, d)
	d.postmaster, err = findPostmaster(ctx, d.admin)
	return d, err
}

// findPostmaster is the parent of the process that serves us; 0 where that is no
// process of PostgreSQL's here.
func findPostmaster(ctx context.Context, db *sql.DB) (int, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0, fmt.Errorf("find PostgreSQL's processes: %w", err)
	}
	defer conn.Close()
	var pid int
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return 0, fmt.Errorf("find PostgreSQL's processes: %w", err)
	}
	if backend, err := readProcess(pid); err == nil && backend.name == "postgres" {
		return backend.parent, nil
	}
	return 0, nil
}

// serverCPU is what the whole server has computed so far; 0 where that can't be
// read.
func (d *database) serverCPU() time.Duration {
	if d.postmaster == 0 {
		return 0
	}
	return familyCPU(d.postmaster)
}

// open connects to the database itself.
func (d *database) open() (*sql.DB, error) {
	db, err := sql.Open("pgx", d.url)
	if err != nil {
		return nil, fmt.Errorf("open the daemons' store: %w", err)
	}
	return db, nil
}

// apply runs statements in it.
func (d *database) apply(ctx context.Context, statements string) (err error) {
	db, err := d.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, statements); err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	return nil
}

// cut ends a random connection to it, and says whether there was one.
func (d *database) cut(ctx context.Context) (found bool, err error) {
	err = d.admin.QueryRowContext(ctx, `WITH victim AS MATERIALIZED (
			SELECT pid FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend' ORDER BY random() LIMIT 1)
		SELECT pg_terminate_backend(pid) FROM victim`, d.name).Scan(&found)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("end a connection: %w", err)
	}
	return found, nil
}

// drop removes it with all connections to it, also where ctx has ended.
func (d *database) drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverPatience)
	defer cancel()
	_, err := d.admin.ExecContext(ctx, "DROP DATABASE "+d.name+" WITH (FORCE)")
	if err != nil {
		err = fmt.Errorf("drop the database: %w", err)
	}
	return errors.Join(err, d.admin.Close())
}
