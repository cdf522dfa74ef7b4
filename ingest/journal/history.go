package journal

import (
	"context"
	"slices"
	"time"
)

// maxDay bounds the messages of a HistoryDay.
const maxDay = 5000

// HistoryDay is a day of a thread, in UTC.
type HistoryDay struct {
	Begin    time.Time // zero if there is no day with messages
	Messages []Message // by thread_seq: its newest 5,000, without notices and deleted ones
	More     bool      // there are messages of earlier days
}

// HistoryDay returns the newest day before a time on which a thread has messages. The
// time is the begin of a day; zero is no bound.
func (j *Journal) HistoryDay(ctx context.Context, t *Thread, before time.Time) (HistoryDay, error) {
	const shown = `thread = $1 AND seq IS NOT NULL AND author <> 'system' AND deleted_at = 0`
	const day = 24 * time.Hour
	return read(ctx, j, func(tx *txn) (d HistoryDay) {
		// Imported messages come after the thread's own ones and are older.
		var newest time.Time
		if !tx.row([]any{&newest}, `SELECT created_at FROM messages WHERE `+shown+` AND (created_at < $2 OR $2 = 0) ORDER BY created_at DESC LIMIT 1`,
			t.row, millis(before)) {
			return d
		}
		d.Begin = newest.UTC().Truncate(day)
		d.Messages = tx.findAll(shown+` AND created_at >= $2 AND created_at < $3 ORDER BY seq DESC LIMIT CAST($4 AS BIGINT)`,
			t.row, millis(d.Begin), millis(d.Begin.Add(day)), int64(maxDay))
		slices.Reverse(d.Messages)
		d.More = tx.has(`SELECT 1 FROM messages WHERE `+shown+` AND created_at < $2 LIMIT 1`, t.row, millis(d.Begin))
		return d
	})
}
