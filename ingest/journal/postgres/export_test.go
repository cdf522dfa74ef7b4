package postgres

import (
	"context"
	"time"
)

// AnswerWithin bounds the transactions that begin afterwards.
func (e *Engine) AnswerWithin(d time.Duration) { e.within = d }

// Waiting returns the number of waiting writes that are not urgent.
func (e *Engine) Waiting() (n int) {
	for _, line := range e.lines {
		_, ordinary := line.Waiting()
		n += ordinary
	}
	return n
}

// Open returns the number of open connections, without the one that listens.
func (e *Engine) Open() int { return int(e.pool.Stat().TotalConns()) }

// Taken returns how often the engine has taken a connection.
func (e *Engine) Taken() int64 { return e.pool.Stat().AcquireCount() }

// Backdate sets the last reading of the clock back.
func (e *Engine) Backdate(by time.Duration) {
	wrong := *e.clock.reading.Load()
	wrong.theirs = wrong.theirs.Add(-by)
	e.clock.reading.Store(&wrong)
}

// Suspend makes the last reading look as if the machine was suspended since then.
func (e *Engine) Suspend(d time.Duration) {
	before := *e.clock.reading.Load()
	before.theirs, before.wall = before.theirs.Add(-d), before.wall.Add(-d)
	e.clock.reading.Store(&before)
}

// ReadAt returns this node's time of the last reading of the clock.
func (e *Engine) ReadAt() time.Time { return e.clock.reading.Load().ours }

// AskTheTime sets the clock.
func (e *Engine) AskTheTime(ctx context.Context) error { return e.clock.set(ctx, e.pool) }

// MaxRaces bounds the retries of a call that loses against other transactions.
const MaxRaces = maxRaces

// WaitingUrgent returns the number of waiting writes that are urgent.
func (e *Engine) WaitingUrgent() (n int) {
	for _, line := range e.lines {
		urgent, _ := line.Waiting()
		n += urgent
	}
	return n
}
