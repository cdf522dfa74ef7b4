package runs

import (
	"context"
	"time"

	"parley/ingest/journal/storage"
)

// HastenTurns makes every turn due that waits for more messages or for files. A replay calls it at the
// end of its input.
func (r *Runs) HastenTurns(ctx context.Context) error {
	_, err := storage.Write(ctx, r.db, storage.WriteOptions{}, func(tx *storage.Txn) struct{} {
		tx.Do(`UPDATE threads SET turn_at = $1 WHERE turn_at > $1 AND run_id IS NULL`, storage.Millis(r.db.Now()))
		return struct{}{}
	})
	return err
}

// Quiet reports whether no envelope is pending in a thread, no turn is due by a time and
// no run is unfinished. A replay waits for that between two of its lines.
func (r *Runs) Quiet(ctx context.Context, turnsBy time.Time) (bool, error) {
	return storage.Read(ctx, r.db, func(tx *storage.Txn) bool {
		return !tx.Has(`SELECT 1 FROM threads WHERE intake_at IS NOT NULL LIMIT 1`) &&
			!tx.Has(`SELECT 1 FROM threads WHERE turn_at IS NOT NULL AND (turn_at <= $1 OR run_id IS NOT NULL) LIMIT 1`, storage.Millis(turnsBy))
	})
}
