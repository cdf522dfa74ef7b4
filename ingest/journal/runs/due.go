package runs

import (
	"context"
	"slices"
	"time"

	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// AssignOrphans gives the due turns of agents outside the list to an heir, so that no
// thread waits for a removed agent. On a shared store, another node may know an agent
// that this one does not: there, a turn is an orphan after it has been overdue for the
// given time and no node has claimed its thread. A run that waits for its agent's later answer
// becomes due, because the removed agent cannot give that answer.
func (r *Runs) AssignOrphans(ctx context.Context, agents []string, heir string, overdue time.Duration) error {
	const orphan = `turn_at IS NOT NULL AND agent = $1 AND turn_at <= $2 AND (owner = '' OR lease_until <= $3)`
	now := storage.Millis(r.db.Now())
	due, ended := threads.LeasesEnded(r.db.Now().Add(-overdue), r.db.Lease), threads.LeasesEnded(r.db.Now(), r.db.Lease) // no bounds in a store for one process
	waiting, err := storage.List(ctx, r.db, storage.Self[string], `SELECT DISTINCT agent FROM threads WHERE turn_at IS NOT NULL`)
	if err != nil {
		return err
	}
	for _, agent := range waiting {
		if slices.Contains(agents, agent) {
			continue
		}
		if err := r.db.EachThread(ctx, func(tx *storage.Txn, thread int64) {
			if tx.Exec(`UPDATE threads SET agent = $4, turn_at = CASE WHEN run_taken = 1 AND turn_at > $6 THEN $6 ELSE turn_at END,
				run_not_before = CASE WHEN run_taken = 1 THEN 0 ELSE run_not_before END, run_taken = 0
				WHERE id = $5 AND `+orphan, agent, due, ended, heir, thread, now) > 0 {
				messages.SetAgent(tx, thread, agent, heir)
			}
		}, orphan, agent, due, ended); err != nil {
			return err
		}
	}
	return nil
}

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
