package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// clock is the database's time as this node reckons it: a reading, and the
// monotonic time since then. Its error is at most half of the round trip that the
// reading took, and what the two clocks drift apart until the next.
type clock struct{ reading atomic.Pointer[reading] }

// reading is one look at the database's clock.
type reading struct {
	theirs time.Time // the database's time
	ours   time.Time // this node's at the same moment
	took   time.Duration
}

const (
	// readEvery is the time between two readings.
	readEvery = 10 * time.Second
	// looks is how often the clock is asked for one reading; the quickest answer counts.
	looks = 3
	// slow is a round trip whose reading is not taken while another is fresh.
	slow = 50 * time.Millisecond
	// fresh is how long a reading is preferred to a slow one.
	fresh = 2 * time.Minute
)

// Now implements journal.Clock.
func (e *Engine) Now() time.Time {
	r := e.clock.reading.Load()
	return r.theirs.Add(time.Since(r.ours))
}

// set asks the database for its time.
func (c *clock) set(ctx context.Context, pool *pgxpool.Pool) error {
	var best *reading
	for range looks {
		var micros int64
		asked := time.Now()
		if err := pool.QueryRow(ctx, `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint`).Scan(&micros); err != nil {
			return fmt.Errorf("ask for the time: %w", err)
		}
		took := time.Since(asked)
		if best == nil || took < best.took {
			best = &reading{theirs: time.UnixMicro(micros).UTC(), ours: asked.Add(took / 2), took: took}
		}
	}
	if before := c.reading.Load(); before == nil || best.took < slow || time.Since(before.ours) > fresh {
		c.reading.Store(best)
	}
	return nil
}

// keepTime sets the clock again and again, until the engine is closed.
func (e *Engine) keepTime(ctx context.Context) {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		select {
		case <-e.quit:
			return
		case <-ticker.C:
			asking, cancel := context.WithTimeout(ctx, readEvery/2)
			if err := e.clock.set(asking, e.pool); err != nil {
				e.log.Debug("the database's clock can't be read", "err", err)
			}
			cancel()
		}
	}
}
