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

// Backdate sets the last reading of the clock back.
func (e *Engine) Backdate(by time.Duration) {
	wrong := *e.clock.reading.Load()
	wrong.theirs = wrong.theirs.Add(-by)
	e.clock.reading.Store(&wrong)
}

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
