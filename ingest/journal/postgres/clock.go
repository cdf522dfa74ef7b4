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
	ours   time.Time // this node's time at the same moment
}

// readEvery is the time between two readings.
const readEvery = 10 * time.Second

// Now implements journal.Clock.
func (e *Engine) Now() time.Time {
	r := e.clock.reading.Load()
	return r.theirs.Add(time.Since(r.ours))
}

// set reads the database's clock.
func (c *clock) set(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	var theirs time.Time
	asked := time.Now()
	if err := pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&theirs); err != nil {
		return fmt.Errorf("read the database's clock: %w", err)
	}
	c.reading.Store(&reading{theirs: theirs.UTC(), ours: asked.Add(time.Since(asked) / 2)})
	return nil
}

// keepTime sets the clock regularly, until the engine is closed.
func (e *Engine) keepTime(ctx context.Context) {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		select {
		case <-e.quit:
			return
		case <-ticker.C:
			if err := e.clock.set(ctx, e.pool); err != nil {
				e.log.Debug("the database's clock cannot be read", "err", err)
			}
		}
	}
}
