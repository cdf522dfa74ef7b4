package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// clock is this node's view of the database's clock: a reading, and the monotonic time
// since then. Its error is at most half of the reading's round trip, plus the drift
// between the two clocks until the next reading.
type clock struct{ reading atomic.Pointer[reading] }

// reading is one answer of the database's clock. It takes at most connectWithin.
type reading struct {
	theirs time.Time // the database's time
	ours   time.Time // this node's monotonic time at the same moment
	wall   time.Time // this node's wall clock at the same moment
}

const (
	// readEvery is the time between two readings.
	readEvery = 10 * time.Second
	// suspended is the least lead of the wall clock that makes a reading invalid. The
	// monotonic clock stands still while the machine is suspended.
	suspended = time.Second
)

// Now implements storage.Clock. It waits for a new reading if the machine was suspended
// since the last one. If that fails, Now uses the last one.
func (e *Engine) Now() time.Time {
	if r := e.clock.reading.Load(); time.Since(r.wall)-time.Since(r.ours) >= suspended {
		e.readClock()
	}
	r := e.clock.reading.Load()
	return r.theirs.Add(time.Since(r.ours))
}

// set reads the database's clock. The reading does not include the wait for a connection.
func (c *clock) set(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	var asked, theirs time.Time
	if err := pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		asked = time.Now()
		return conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&theirs)
	}); err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	ours := asked.Add(time.Since(asked) / 2)
	c.reading.Store(&reading{theirs: theirs.UTC(), ours: ours, wall: ours.Round(0)})
	return nil
}

// keepTime sets the clock regularly, until the engine is closed.
func (e *Engine) keepTime() {
	for tick := time.Tick(readEvery); ; {
		select {
		case <-e.quit:
			return
		case <-tick:
			e.readClock()
		}
	}
}
