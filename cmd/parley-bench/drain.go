package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// backlog is what the daemon's store says is still to be done.
type backlog struct{ envelopes, turns, runs, deliveries int64 }

func (b backlog) empty() bool { return b == backlog{} }

func (b backlog) String() string {
	return fmt.Sprintf("%d envelopes, %d messages without a turn, %d runs, %d deliveries", b.envelopes, b.turns, b.runs, b.deliveries)
}

// openStore opens the daemon's database beside it.
func openStore(path string, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"_pragma": append([]string{"busy_timeout(5000)"}, pragmas...)}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+query.Encode())
	if err != nil {
		return nil, fmt.Errorf("open the daemon's store: %w", err)
	}
	return db, nil
}

func readBacklog(ctx context.Context, db *sql.DB) (b backlog, err error) {
	err = db.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM envelopes WHERE state = 'pending'),
		(SELECT count(*) FROM messages WHERE trigger = 'run' AND run IS NULL),
		(SELECT count(*) FROM threads WHERE run_id IS NOT NULL),
		(SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending'))`).
		Scan(&b.envelopes, &b.turns, &b.runs, &b.deliveries)
	if err != nil {
		return b, fmt.Errorf("read the daemon's backlog: %w", err)
	}
	return b, nil
}

// store opens the store of the daemons, to look into it.
func (n *nodes) store() (*sql.DB, error) {
	if n.database != nil {
		return n.database.open()
	}
	return openStore(n.all[0].storePath(), "query_only(1)")
}

// drain waits until the daemons have nothing left to do, which is when another
// post can only be a mistake, and returns what is left at the end of the time.
func drain(ctx context.Context, n *nodes, within time.Duration) (left backlog, err error) {
	db, err := n.store()
	if err != nil {
		return left, err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		if err := n.alive(); err != nil {
			return left, err
		}
		now, err := readBacklog(ctx, db)
		switch {
		case err != nil && ctx.Err() != nil:
			return left, nil
		case err != nil:
			return left, err
		case now.empty():
			return now, nil
		}
		left = now
		if !pause(ctx, 100*time.Millisecond) {
			return left, nil
		}
	}
}

// gapsLeft counts the channels of which the daemons still have to read what they missed.
func gapsLeft(ctx context.Context, db *sql.DB) (n int, err error) {
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM gaps`).Scan(&n); err != nil {
		return 0, fmt.Errorf("count what is still to be read: %w", err)
	}
	return n, nil
}
