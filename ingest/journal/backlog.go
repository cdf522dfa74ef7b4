package journal

import (
	"context"
	"time"

	"parley/ingest/journal/storage"
)

// Backlog is the number of envelopes that are pending or dead letters.
type Backlog struct {
	Pending     int64 // envelopes
	DeadLetters int64
}

// Backlog counts pending envelopes and dead letters. Its cost grows with their number: it
// suits a metric that is read rarely.
func (j *Journal) Backlog(ctx context.Context) (b Backlog, err error) {
	_, err = j.db.Row(ctx, []any{&b.Pending, &b.DeadLetters}, `SELECT (SELECT count(*) FROM envelopes WHERE state = 'pending' AND thread IS NOT NULL)
		+ (SELECT count(*) FROM envelopes WHERE state = 'pending' AND thread IS NULL), (SELECT count(*) FROM envelopes WHERE state = 'dead')`)
	return b, err
}

// HastenTurns makes every turn due that waits for more messages or for files. A replay calls it at the
// end of its input.
func (j *Journal) HastenTurns(ctx context.Context) error {
	_, err := storage.Write(ctx, j.db, storage.WriteOptions{}, func(tx *storage.Txn) struct{} {
		tx.Do(`UPDATE threads SET turn_at = $1 WHERE turn_at > $1 AND run_id IS NULL`, storage.Millis(j.db.Now()))
		return struct{}{}
	})
	return err
}

// Quiet reports whether no envelope is pending in a thread, no turn is due by a time and
// no run is unfinished. A replay waits for that between two of its lines.
func (j *Journal) Quiet(ctx context.Context, turnsBy time.Time) (bool, error) {
	return storage.Read(ctx, j.db, func(tx *storage.Txn) bool {
		return !tx.Has(`SELECT 1 FROM threads WHERE intake_at IS NOT NULL LIMIT 1`) &&
			!tx.Has(`SELECT 1 FROM threads WHERE turn_at IS NOT NULL AND (turn_at <= $1 OR run_id IS NOT NULL) LIMIT 1`, storage.Millis(turnsBy))
	})
}
