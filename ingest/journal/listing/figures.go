package listing

import (
	"context"
	"time"

	"parley/ingest/journal/storage"
)

// Figures are the numbers of the store for a monitoring system. Each is at most CountLimit.
type Figures struct {
	Pending, DeadLetters int64 // envelopes
	// Deliveries are the deliveries that are not sent, by state and then by workspace.
	Deliveries map[string]map[string]int64
	Waiting    map[string]int64 // turns that are due or will be, by agent
	Running    map[string]int64 // unfinished runs, by agent
	Questions  map[string]int64 // open ones, by agent
	Behind     map[string]int64 // channels whose missed messages are still to be read, by workspace
	// Oldest is since when the oldest due work of a queue waits: intake, turn or delivery. A queue
	// without due work has none.
	Oldest map[string]time.Time
}

// Figures returns the numbers of the store.
func (l *Listing) Figures(ctx context.Context) (Figures, error) {
	now := storage.Millis(l.db.Now())
	return storage.Read(ctx, l.db, func(tx *storage.Txn) Figures {
		f := Figures{Deliveries: map[string]map[string]int64{}, Oldest: map[string]time.Time{}}
		f.Pending = min(CountLimit, count(tx, `envelopes WHERE state = 'pending' AND thread IS NOT NULL`)+count(tx, `envelopes WHERE state = 'pending' AND thread IS NULL`))
		f.DeadLetters = count(tx, `envelopes WHERE state = 'dead'`)
		f.Deliveries["pending"] = by(tx, `workspace`, `deliveries WHERE state IN ('pending', 'sending') AND state = 'pending'`)
		f.Deliveries["sending"] = by(tx, `workspace`, `deliveries WHERE state IN ('pending', 'sending') AND state = 'sending'`)
		f.Deliveries["unknown"] = by(tx, `workspace`, `deliveries WHERE `+notSent+` AND state = 'unknown' AND kind = 'post'`)
		f.Deliveries["failed"] = by(tx, `workspace`, `deliveries WHERE `+notSent+` AND state = 'failed' AND kind = 'post'`)
		f.Waiting = by(tx, `agent`, `threads WHERE turn_at IS NOT NULL AND run_id IS NULL`)
		f.Running = by(tx, `agent`, `threads WHERE run_id IS NOT NULL`)
		f.Questions, f.Behind = by(tx, `agent`, `questions WHERE state = 'open'`), by(tx, `workspace`, `gaps`)
		for queue, query := range map[string]string{
			"intake": `SELECT min(intake_at) FROM threads WHERE intake_at IS NOT NULL`,
			"turn":   `SELECT min(turn_at) FROM (SELECT turn_at FROM threads WHERE turn_at IS NOT NULL AND run_id IS NULL` + limited,
			"delivery": `SELECT min(at) FROM (SELECT min(due_at) AS at FROM deliveries WHERE state = 'pending'
				UNION ALL SELECT min(due_at) FROM deliveries WHERE state IN ('pending', 'sending') AND state = 'sending') AS open`,
		} {
			var at int64
			if tx.Row([]any{&at}, query); at > 0 && at < now {
				f.Oldest[queue] = storage.Instant(at)
			}
		}
		return f
	})
}
