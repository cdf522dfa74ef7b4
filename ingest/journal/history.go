package journal

import (
	"context"
	"math"
	"slices"
	"time"
)

// maxDay bounds the messages of a HistoryDay.
const maxDay = 5000

// HistoryDay is a day of a thread, in UTC.
type HistoryDay struct {
	Begin    time.Time // zero if there is no day with messages
	Messages []Message // by thread_seq: its newest 5,000 or PageBytes, without notices and deleted ones
	Next     int64     // the thread_seq before which the rest of the day is read; 0 if this is all of it
	More     bool      // there are earlier messages
}

// HistoryDay returns the newest day before a time on which a thread has messages. The
// time is the begin of a day; zero is no bound. beforeSeq bounds the thread_seqs; 0 is no bound.
func (j *Journal) HistoryDay(ctx context.Context, t *Thread, before time.Time, beforeSeq int64) (HistoryDay, error) {
	if beforeSeq == 0 {
		beforeSeq = math.MaxInt64
	}
	const shown = `thread = $1 AND seq IS NOT NULL AND +seq < $3 AND author <> 'system' AND deleted_at = 0`
	const day = 24 * time.Hour
	return read(ctx, j, func(tx *txn) (d HistoryDay) {
		// Imported messages come after the thread's own ones and are older.
		var newest time.Time
		if !tx.row([]any{&newest}, `SELECT created_at FROM messages WHERE `+shown+` AND (created_at < $2 OR $2 = 0) ORDER BY created_at DESC LIMIT 1`,
			t.row, millis(before), beforeSeq) {
			return d
		}
		d.Begin = newest.UTC().Truncate(day)
		d.Messages = tx.complete(upTo(tx, (*Message).Size, (*Message).dest, `SELECT `+messageColumns+` FROM messages m WHERE `+
			shown+` AND created_at >= $2 AND created_at < $4 ORDER BY seq DESC LIMIT CAST($5 AS BIGINT)`,
			t.row, millis(d.Begin), beforeSeq, millis(d.Begin.Add(day)), int64(maxDay)))
		slices.Reverse(d.Messages)
		rest := shown + ` AND created_at >= $2 AND created_at < $4`
		if first := d.Messages[0].Seq; isFull(d.Messages, maxDay, (*Message).Size) &&
			tx.has(`SELECT 1 FROM messages WHERE `+rest+` LIMIT 1`, t.row, millis(d.Begin), first, millis(d.Begin.Add(day))) {
			d.Next = first
		}
		d.More = d.Next > 0 || tx.has(`SELECT 1 FROM messages WHERE `+shown+` AND created_at < $2 LIMIT 1`, t.row, millis(d.Begin), beforeSeq)
		return d
	})
}
