package journal

import (
	"context"
	"time"
)

// Quiet says whether no envelope is pending in a thread and no turn is due by a
// time: what a recording waits for between two of its lines.
func (j *Journal) Quiet(ctx context.Context, turnsBy time.Time) (quiet bool, err error) {
	err = j.engine.Read(ctx, func(tx Tx) error {
		var one int64
		busy, err := tx.Row([]any{&one}, `SELECT 1 FROM threads WHERE intake_at IS NOT NULL LIMIT 1`)
		if err == nil && !busy {
			busy, err = tx.Row([]any{&one}, `SELECT 1 FROM threads WHERE turn_at IS NOT NULL AND turn_at <= ? LIMIT 1`, millis(turnsBy))
		}
		quiet = !busy
		return err
	})
	return quiet, err
}
