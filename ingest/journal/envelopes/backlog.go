package envelopes

import "context"

// Backlog is the number of envelopes that are pending or dead letters.
type Backlog struct {
	Pending     int64 // envelopes
	DeadLetters int64
}

// Backlog counts pending envelopes and dead letters. Its cost grows with their number: it
// suits a metric that is read rarely.
func (e *Envelopes) Backlog(ctx context.Context) (b Backlog, err error) {
	_, err = e.db.Row(ctx, []any{&b.Pending, &b.DeadLetters}, `SELECT (SELECT count(*) FROM envelopes WHERE state = 'pending' AND thread IS NOT NULL)
		+ (SELECT count(*) FROM envelopes WHERE state = 'pending' AND thread IS NULL), (SELECT count(*) FROM envelopes WHERE state = 'dead')`)
	return b, err
}
