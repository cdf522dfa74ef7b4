package messages

import (
	"context"
	"math"
	"slices"
	"time"

	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
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
func (m *Messages) HistoryDay(ctx context.Context, t *threads.Thread, before time.Time, beforeSeq int64) (HistoryDay, error) {
	if beforeSeq == 0 {
		beforeSeq = math.MaxInt64
	}
	const shown = `thread = $1 AND seq IS NOT NULL AND +seq < $3 AND author <> 'system' AND deleted_at = 0`
	const day = 24 * time.Hour
	return storage.Read(ctx, m.db, func(tx *storage.Txn) (d HistoryDay) {
		// Imported messages come after the thread's own ones and are older.
		var newest time.Time
		if !tx.Row([]any{&newest}, `SELECT created_at FROM messages WHERE `+shown+` AND (created_at < $2 OR $2 = 0) ORDER BY created_at DESC LIMIT 1`,
			t.Row, storage.Millis(before), beforeSeq) {
			return d
		}
		d.Begin = newest.UTC().Truncate(day)
		d.Messages = Complete(tx, storage.UpTo(tx, (*Message).Size, (*Message).dest, `SELECT `+messageColumns+` FROM messages m WHERE `+
			shown+` AND created_at >= $2 AND created_at < $4 ORDER BY seq DESC LIMIT CAST($5 AS BIGINT)`,
			t.Row, storage.Millis(d.Begin), beforeSeq, storage.Millis(d.Begin.Add(day)), int64(maxDay)))
		slices.Reverse(d.Messages)
		rest := shown + ` AND created_at >= $2 AND created_at < $4`
		if first := d.Messages[0].Seq; storage.IsFull(d.Messages, maxDay, (*Message).Size) &&
			tx.Has(`SELECT 1 FROM messages WHERE `+rest+` LIMIT 1`, t.Row, storage.Millis(d.Begin), first, storage.Millis(d.Begin.Add(day))) {
			d.Next = first
		}
		d.More = d.Next > 0 || tx.Has(`SELECT 1 FROM messages WHERE `+shown+` AND created_at < $2 LIMIT 1`, t.Row, storage.Millis(d.Begin), beforeSeq)
		return d
	})
}
