package schedules

import (
	"context"
	"errors"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// MaxOfThread bounds the schedules of a thread that will tick.
const MaxOfThread = 20

// ErrTooMany means that a thread has as many schedules as it may.
var ErrTooMany = errors.New("the thread has 20 schedules that wait: cancel one first")

// AddSchedule stores a schedule that an agent made for a thread, with the place of the thread. A repetition with the same
// ID changes nothing. It returns the stored one. It fails with ErrNotFound if there is no such thread in the
// workspace, and with ErrTooMany.
func (s *Schedules) AddSchedule(ctx context.Context, n Schedule) (Schedule, error) {
	return storage.Write(ctx, s.db, storage.WriteOptions{Thread: n.Thread}, func(tx *storage.Txn) Schedule {
		var id int64
		if !tx.Row([]any{&id, (*string)(&n.Platform), &n.Place, &n.Parent}, `SELECT id, platform, channel, parent FROM threads
			WHERE key = $1 AND workspace = $2 FOR UPDATE`, string(n.Thread), n.Workspace) {
			tx.Fail(storage.ErrNotFound)
			return n
		}
		if known := find(tx, n.Workspace, n.ID); known != nil {
			if known.Thread != n.Thread {
				tx.Fail(storage.ErrNotFound)
			}
			return *known
		}
		var waiting int64
		tx.Row([]any{&waiting}, `SELECT count(*) FROM schedules WHERE thread = $1 AND next_at IS NOT NULL`, string(n.Thread))
		if waiting >= MaxOfThread {
			tx.Fail(ErrTooMany)
		}
		now := s.wall()
		n.Once, n.NextAt, n.CreatedAt = true, n.Next(now), storage.Instant(storage.Millis(now))
		tx.Do(`INSERT INTO schedules (workspace, id, thread, plan, next_at, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
			n.Workspace, n.ID, string(n.Thread), tx.Pack(n.Plan, false), millis(n.NextAt), storage.Millis(now))
		return n
	})
}

// SchedulesOf returns the schedules of a thread that will tick, the next one first.
func (s *Schedules) SchedulesOf(ctx context.Context, workspace string, thread event.ThreadKey) ([]Schedule, error) {
	return storage.Read(ctx, s.db, func(tx *storage.Txn) []Schedule {
		list := OfThread(tx, thread)
		if len(list) > 0 && list[0].Workspace != workspace {
			return nil
		}
		return list
	})
}

// OfThread returns the schedules of a thread that will tick, the next one first.
func OfThread(tx *storage.Txn, thread event.ThreadKey) []Schedule {
	if thread == "" {
		return nil
	}
	return read(tx, storage.Rows(tx, (*row).dest, `SELECT `+columns+` FROM schedules s WHERE s.thread = $1 AND s.next_at IS NOT NULL ORDER BY s.next_at, s.id`, string(thread)))
}

// Move makes the schedules of a thread those of another one of its channel.
func Move(tx *storage.Txn, workspace string, from, to event.ThreadKey) {
	tx.Do(`UPDATE schedules SET thread = $3 WHERE workspace = $1 AND thread = $2 AND thread <> ''`, workspace, string(from), string(to))
}

// CancelSchedule ends a schedule of a thread. It fails with ErrNotFound if there is none, or if it has ticked for the
// last time.
func (s *Schedules) CancelSchedule(ctx context.Context, workspace string, thread event.ThreadKey, id string) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		if !Cancel(tx, workspace, thread, id) {
			tx.Fail(storage.ErrNotFound)
		}
	})
}

// Cancel ends a schedule of a thread. It returns false if there is none, or if it has ticked for the last time.
func Cancel(tx *storage.Txn, workspace string, thread event.ThreadKey, id string) bool {
	return IsOf(tx, workspace, thread, id) && remove(tx, workspace, thread, id)
}

// IsOf reports whether a thread has a schedule that Cancel ends.
func IsOf(tx *storage.Txn, workspace string, thread event.ThreadKey, id string) bool {
	return thread != "" && tx.Has(`SELECT 1 FROM schedules s WHERE workspace = $1 AND id = $2 AND thread = $3
		AND (next_at IS NOT NULL OR EXISTS (SELECT 1 FROM schedule_ticks k WHERE k.workspace = s.workspace AND k.schedule = s.id AND k.state = 'due'))`, workspace, id, string(thread))
}
