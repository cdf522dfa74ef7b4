package postgres

import (
	"context"
	"time"
)

// AnswerWithin sets how long a transaction may take, before the first one begins.
func (e *Engine) AnswerWithin(d time.Duration) { e.within = d }

// Waiting is how many writes that are not urgent are in line.
func (e *Engine) Waiting() (n int) {
	for _, line := range e.lines {
		n += line.Waiting()
	}
	return n
}

// Backdate makes the reading of the clock one that is wrong.
func (e *Engine) Backdate(by time.Duration) {
	wrong := *e.clock.reading.Load()
	wrong.theirs = wrong.theirs.Add(-by)
	e.clock.reading.Store(&wrong)
}

// AskTheTime sets the clock, and returns how long the best answer took.
func (e *Engine) AskTheTime(ctx context.Context) (time.Duration, error) {
	err := e.clock.set(ctx, e.pool)
	return e.clock.reading.Load().took, err
}

// MaxRaces is how often a call is run again that lost against others.
const MaxRaces = maxRaces

// Placeholders turns SQLite's placeholders into PostgreSQL's.
func Placeholders(query string) string { return placeholders(query) }

// WaitingUrgent is how many writes that are urgent are in line.
func (e *Engine) WaitingUrgent() (n int) {
	for _, line := range e.lines {
		n += line.WaitingUrgent()
	}
	return n
}
