package journal

import (
	"context"
	"time"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/search"
	"parley/ingest/journal/storage"
	"parley/ingest/wake"
)

// erasePage bounds the messages that EraseDue reads at once.
const erasePage = 200

// answersTask names the progress of EraseDue: the time up to which late answers are erased.
const answersTask = "answers"

// EraseDue empties what is to leave the store now: what a forgotten person has written, answers to emptied messages that came later, and
// the messages that were sent longer ago than retention.Messages. The caller calls it each minute. Only one call may run at a time.
func (j *Journal) EraseDue(ctx context.Context, retention Retention) (all record.Erased, err error) {
	begun := j.db.Now()
	if all, err = j.People.Resume(ctx, nil); err != nil {
		return all, err
	}
	var since int64
	if _, err = j.db.Row(ctx, []any{&since}, `SELECT position FROM retention_progress WHERE task = $1`, answersTask); err != nil {
		return all, err
	}
	made, err := j.Recorder.EraseAnswers(ctx, storage.Instant(max(1, since-time.Minute.Milliseconds())))
	if all.Add(made); err != nil {
		return all, err
	}
	if retention.Messages > 0 {
		made, err = j.eraseOld(ctx, begun.Add(-retention.Messages))
		if all.Add(made); err != nil {
			return all, err
		}
	}
	return all, j.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`INSERT INTO retention_progress (task, position) VALUES ($1, $2) ON CONFLICT (task) DO UPDATE SET position = excluded.position`, answersTask, storage.Millis(begun))
	})
}

// eraseOld empties the messages that were sent before a time, and forgets the names of those who have written nothing since.
func (j *Journal) eraseOld(ctx context.Context, before time.Time) (all record.Erased, err error) {
	var last messages.Placed
	for {
		rows, err := messages.Older(ctx, j.db, before, erasePage)
		if err != nil {
			return all, err
		}
		if len(rows) == 0 || rows[0] == last { // that one was moved to another thread meanwhile
			break
		}
		last = rows[0]
		made, err := j.Recorder.Erase(ctx, rows)
		if all.Add(made); err != nil {
			return all, err
		}
		if !wake.After(ctx, prunePause) {
			return all, context.Cause(ctx)
		}
	}
	_, err = j.prune(ctx, search.Aged(storage.Millis(before)))
	return all, err
}
