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
	now := storage.Millis(r.db.Now())
	due, ended := threads.LeasesEnded(r.db.Now().Add(-overdue), r.db.Lease), threads.LeasesEnded(r.db.Now(), r.db.Lease) // no bounds in a store for one process
	waiting, err := threads.TurnAgents(ctx, r.db)
	if err != nil {
		return err
	}
	for _, agent := range waiting {
		if slices.Contains(agents, agent) {
			continue
		}
		orphans := threads.Orphans{Agent: agent, Due: due, Ended: ended}
		list, err := orphans.Threads(ctx, r.db)
		if err != nil {
			return err
		}
		if err := r.db.EachThread(ctx, list, func(tx *storage.Txn, thread int64) {
			if orphans.Assign(tx, thread, heir, now) {
				messages.SetAgent(tx, thread, agent, heir)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// HastenTurns makes every turn due that waits for more messages or for files. A replay calls it at the
// end of its input.
func (r *Runs) HastenTurns(ctx context.Context) error {
	_, err := storage.Write(ctx, r.db, storage.WriteOptions{}, func(tx *storage.Txn) struct{} {
		threads.HastenAll(tx, storage.Millis(r.db.Now()))
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
