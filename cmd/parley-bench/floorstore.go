package main

import (
	"context"
	"embed"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"parley/ingest/journal"
	"parley/ingest/journal/sqlite"
)

// floorStore are the commits of a message, each durable when its call returns.
type floorStore interface {
	// accept keeps an envelope once; isNew is false for one that is there.
	accept(ctx context.Context, key string, body []byte) (id int64, isNew bool, err error)
	// record keeps an envelope's message, and that the envelope is settled.
	record(ctx context.Context, id int64, channel, root, text string) error
	// sending keeps that a reply is about to be posted, until a time at the most.
	sending(ctx context.Context, id int64, by time.Time) error
	// sent keeps the platform's id of the reply.
	sent(ctx context.Context, id int64, ts string) error
}

//go:embed floor/sqlite/*.sql
var floorMigrations embed.FS

// floorTables make the tables of a floorPostgres.
//
//go:embed floor/postgres/tables.sql
var floorTables string

// floorSQLite is the journal's engine with a schema of its own: a committer
// written for this alone was no faster.
type floorSQLite struct{ *sqlite.Engine }

func openFloorSQLite(ctx context.Context, path string) (floorSQLite, error) {
	engine, err := sqlite.Open(ctx, path, sqlite.WithMigrations(floorMigrations, "floor/sqlite/*.sql"))
	return floorSQLite{engine}, err
}

func (s floorSQLite) accept(ctx context.Context, key string, body []byte) (id int64, isNew bool, err error) {
	err = s.Write(ctx, journal.WriteOptions{}, func(tx journal.Tx) error {
		isNew, err = tx.Row([]any{&id}, `INSERT INTO envelopes (key, body) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id`, key, body)
		return err
	})
	return id, isNew, err
}

func (s floorSQLite) record(ctx context.Context, id int64, channel, root, text string) error {
	return s.Write(ctx, journal.WriteOptions{}, func(tx journal.Tx) error {
		if _, err := tx.Exec(`INSERT INTO messages (id, channel, thread, content) VALUES ($1, $2, $3, $4)`, id, channel, root, text); err != nil {
			return err
		}
		_, err := tx.Exec(`UPDATE envelopes SET done = 1 WHERE id = $1`, id)
		return err
	})
}

// sending keeps nothing: on SQLite the yardstick is three commits, since the
// daemon there marks a reply in the commit that stores it.
func (s floorSQLite) sending(context.Context, int64, time.Time) error { return nil }

func (s floorSQLite) sent(ctx context.Context, id int64, ts string) error {
	return s.Write(ctx, journal.WriteOptions{}, func(tx journal.Tx) error {
		_, err := tx.Exec(`UPDATE messages SET sent = $1 WHERE id = $2`, ts, id)
		return err
	})
}

// floorPostgres is what a plain program does: a pool, prepared statements (pgx
// keeps them by itself), one round trip for each transaction.
type floorPostgres struct{ *pgxpool.Pool }

// openFloorPostgres has as many connections as one daemon.
func openFloorPostgres(ctx context.Context, url string, connections int) (floorPostgres, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return floorPostgres{}, err
	}
	config.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	return floorPostgres{pool}, err
}

func (s floorPostgres) accept(ctx context.Context, key string, body []byte) (id int64, isNew bool, err error) {
	err = s.QueryRow(ctx, `INSERT INTO envelopes (key, body) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING id`, key, body).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return id, err == nil, err
}

// record sends both statements at once, which then are one transaction.
func (s floorPostgres) record(ctx context.Context, id int64, channel, root, text string) error {
	batch := &pgx.Batch{}
	batch.Queue(`INSERT INTO messages (id, channel, thread, content) VALUES ($1, $2, $3, $4)`, id, channel, root, text)
	batch.Queue(`UPDATE envelopes SET done = true WHERE id = $1`, id)
	return s.SendBatch(ctx, batch).Close()
}

func (s floorPostgres) sending(ctx context.Context, id int64, by time.Time) error {
	_, err := s.Exec(ctx, `INSERT INTO deliveries (message, state, send_by) VALUES ($1, 'sending', $2)`, id, by)
	return err
}

func (s floorPostgres) sent(ctx context.Context, id int64, ts string) error {
	_, err := s.Exec(ctx, `UPDATE deliveries SET state = 'sent', sent = $2 WHERE message = $1`, id, ts)
	return err
}
