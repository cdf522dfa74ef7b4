package schedules

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"parley/ingest/journal/storage"
)

// ErrWorks means that a schedule does not tick, because the run of its tick before still works.
var ErrWorks = errors.New("the run before still works")

const (
	// onTime is the age up to which a tick is not a missed one.
	onTime = time.Minute
	// missedAge bounds the age of a missed tick that runs.
	missedAge = 24 * time.Hour
	// missed is why a missed tick did not run.
	missed = "no node was there at its time"
)

// Tick is one time at which a schedule asks.
type Tick struct {
	Workspace, Schedule string
	PlannedAt           time.Time
	// Message is the external id of the message that asks, and the name of its run.
	Message string
	Tries   int64 // that have begun, with this one

	due int64
}

// messageOf returns the Message of a tick, which is the same at each try.
func messageOf(workspace, schedule string, planned time.Time) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("parley:schedule:"+workspace+":"+schedule+":"+planned.UTC().Format(time.RFC3339Nano))).String()
}

// Skipped counts the ticks that did not run, by workspace.
type Skipped map[string]int

// Plan takes the ticks that are due, for the schedules of some workspaces, and plans the next ones. It returns whether more
// may be due, and those that were skipped.
func (s *Schedules) TakeTicks(ctx context.Context, workspaces []string, limit int) (more bool, skipped Skipped, err error) {
	type taken struct {
		n       int
		skipped Skipped
	}
	t, err := storage.Write(ctx, s.db, storage.WriteOptions{}, func(tx *storage.Txn) taken {
		now := storage.Instant(storage.Millis(s.wall()))
		list := read(tx, storage.Rows(tx, (*row).dest, `SELECT `+columns+` FROM schedules s WHERE s.next_at <= $1 AND `+served(`s.workspace`, `2`)+`
			ORDER BY s.next_at LIMIT CAST($3 AS BIGINT) FOR UPDATE SKIP LOCKED`, storage.Millis(now), storage.Between(workspaces), int64(limit)))
		t := taken{len(list), Skipped{}}
		for i := range list {
			if !list[i].take(tx, now) {
				t.skipped[list[i].Workspace]++
			}
		}
		return t
	})
	return t.n == limit, t.skipped, err
}

// take adds the tick that is due, and plans the next one. It returns false if the tick is skipped.
func (s *Schedule) take(tx *storage.Txn, now time.Time) bool {
	planned, next := s.last(now)
	late := now.Sub(planned)
	runs, why := late < onTime || s.Once && late < missedAge, missed
	if runs && works(tx, s.Workspace, s.ID) {
		runs, why = false, ErrWorks.Error()
	}
	added := add(tx, s.Workspace, s.ID, planned, now, runs, why)
	tx.Do(`UPDATE schedules SET next_at = $3 WHERE workspace = $1 AND id = $2`, s.Workspace, s.ID, millis(next))
	return runs || !added
}

// last returns the last tick that is due, and the first one after now.
func (s *Schedule) last(now time.Time) (planned, next time.Time) {
	c, err := s.clock()
	if err != nil { // a newer program has stored it
		return s.NextAt, time.Time{}
	}
	planned = s.NextAt
	if recent := now.Add(-missedAge - onTime); planned.Before(recent) {
		if at := c.next(recent); !at.IsZero() && !at.After(now) {
			planned = at
		}
	}
	for next = c.next(planned); !next.IsZero() && !next.After(now); next = c.next(next) {
		planned = next
	}
	return planned, next
}

// add adds a tick, unless there is one, and reports whether it did.
func add(tx *storage.Txn, workspace, id string, planned, now time.Time, runs bool, why string) bool {
	state, due := "due", any(storage.Millis(now))
	if runs {
		why = ""
	} else {
		state, due = "skipped", nil
	}
	return tx.Exec(`INSERT INTO schedule_ticks (workspace, schedule, planned_at, message, state, error, due_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT DO NOTHING`, workspace, id, storage.Millis(planned), messageOf(workspace, id, planned), state, why, due) > 0
}

// works reports whether the last tick of a schedule that was not skipped has not ended.
func works(tx *storage.Txn, workspace, id string) bool {
	var state, message string
	if !tx.Row([]any{&state, &message}, `SELECT state, message FROM schedule_ticks WHERE workspace = $1 AND schedule = $2 AND state IN ('due', 'asked')
		ORDER BY planned_at DESC LIMIT 1`, workspace, id) || state == "due" {
		return state == "due"
	}
	if tx.Has(`SELECT 1 FROM envelopes WHERE workspace = $1 AND dedupe_key = $2 AND state = 'pending'`, workspace, message) {
		return true
	}
	return tx.Has(`SELECT 1 FROM messages m WHERE m.workspace = $1 AND m.external_id = $2
		AND (m.run IS NULL AND m.trigger = 'run' AND m.deleted_at = 0 OR EXISTS (SELECT 1 FROM threads t WHERE t.id = m.thread AND t.run_id = m.run))`, workspace, message)
}

// RunNow adds a tick of a schedule, also of a paused one. It fails with ErrNotFound if there is none, and with ErrWorks.
func (s *Schedules) RunNow(ctx context.Context, workspace, id string) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		now := storage.Instant(storage.Millis(s.wall()))
		at := now
		if at.Truncate(time.Minute).Equal(at) { // the times of ticks that were planned
			at = at.Add(time.Millisecond)
		}
		switch known := find(tx, workspace, id); {
		case known == nil:
			tx.Fail(storage.ErrNotFound)
		case works(tx, workspace, id), !add(tx, workspace, id, at, now, true, ""):
			tx.Fail(ErrWorks)
		}
	})
}

// DueTick is a tick whose message is to be made durable, with its schedule.
type DueTick struct {
	Tick
	Of Schedule
}

// Room is how many more ticks of a workspace may be asked now: of those that were not tried yet, and of those whose place could
// not be found at once.
type Room struct{ First, Again int }

// DueTicks returns ticks whose messages are to be made durable, and keeps them from others for a time. A tick
// whose schedule was removed is not among them.
func (s *Schedules) DueTicks(ctx context.Context, room map[string]Room, lease time.Duration) ([]DueTick, error) {
	return storage.Write(ctx, s.db, storage.WriteOptions{}, func(tx *storage.Txn) []DueTick {
		now := s.wall()
		until := storage.Millis(now.Add(lease))
		var list []DueTick
		for _, workspace := range slices.Sorted(maps.Keys(room)) {
			ticks := append(dueTicks(tx, workspace, `tries = 0`, now, room[workspace].First), dueTicks(tx, workspace, `tries > 0`, now, room[workspace].Again)...)
			for _, t := range ticks {
				of := read(tx, storage.Rows(tx, (*row).dest, `SELECT `+columns+` FROM schedules s WHERE s.workspace = $1 AND s.id = $2`, t.Workspace, t.Schedule))
				if len(of) == 0 {
					t.end(tx, "skipped", "the schedule was removed")
					continue
				}
				tx.Do(`UPDATE schedule_ticks SET due_at = $4, tries = tries + 1 WHERE workspace = $1 AND schedule = $2 AND planned_at = $3`,
					t.Workspace, t.Schedule, storage.Millis(t.PlannedAt), until)
				t.Tries, t.due = t.Tries+1, until
				list = append(list, DueTick{t, of[0]})
			}
		}
		return list
	})
}

// dueTicks returns due ticks of a workspace that meet a condition, the longest due first.
func dueTicks(tx *storage.Txn, workspace, condition string, now time.Time, limit int) []Tick {
	if limit <= 0 {
		return nil
	}
	return storage.Rows(tx, (*Tick).dest, `SELECT workspace, schedule, planned_at, message, tries FROM schedule_ticks
		WHERE due_at <= $1 AND workspace = $2 AND `+condition+` ORDER BY due_at LIMIT CAST($3 AS BIGINT) FOR UPDATE SKIP LOCKED`, storage.Millis(now), workspace, int64(limit))
}

func (t *Tick) dest() []any {
	return []any{&t.Workspace, &t.Schedule, &t.PlannedAt, &t.Message, &t.Tries}
}

// end ends a tick without a message.
func (t *Tick) end(tx *storage.Txn, state, why string) {
	tx.Do(`UPDATE schedule_ticks SET state = $4, error = $5, due_at = NULL WHERE workspace = $1 AND schedule = $2 AND planned_at = $3 AND state = 'due'`,
		t.Workspace, t.Schedule, storage.Millis(t.PlannedAt), state, why)
}

// Asked notes that the message of a tick is durable, also if a pause or a removal has ended the tick meanwhile. If it is
// the root of a thread, further ticks continue that.
func (s *Schedules) Asked(ctx context.Context, t *Tick, root bool) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`UPDATE schedule_ticks SET state = 'asked', error = '', due_at = NULL WHERE workspace = $1 AND schedule = $2 AND planned_at = $3`,
			t.Workspace, t.Schedule, storage.Millis(t.PlannedAt))
		if root {
			tx.Do(`UPDATE schedules SET root = $3 WHERE workspace = $1 AND id = $2`, t.Workspace, t.Schedule, t.Message)
		}
	})
}

// FailTick ends a tick without a run.
func (s *Schedules) FailTick(ctx context.Context, t *Tick, cause string) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) { t.end(tx, "failed", cause) })
}

// SkipTick ends a tick as one that was missed.
func (s *Schedules) SkipTick(ctx context.Context, t *Tick, why string) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) { t.end(tx, "skipped", why) })
}

// PostponeTick makes a tick due again at a time, unless another node has it meanwhile.
func (s *Schedules) PostponeTick(ctx context.Context, t *Tick, at time.Time, cause string) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`UPDATE schedule_ticks SET due_at = $5, error = $6 WHERE workspace = $1 AND schedule = $2 AND planned_at = $3 AND due_at = $4`,
			t.Workspace, t.Schedule, storage.Millis(t.PlannedAt), t.due, storage.Millis(at), cause)
	})
}

// TickPost returns the platform's id of the first post of a tick's run; empty if none is on the platform. sending tells that
// it is on its way.
func (s *Schedules) TickPost(ctx context.Context, workspace, message string) (post string, sending bool, err error) {
	var state string
	_, err = s.db.Row(ctx, []any{&post, &state}, `SELECT d.platform_id, d.state FROM messages m JOIN deliveries d ON d.run = m.run
		WHERE m.workspace = $1 AND m.external_id = $2 AND d.part = 0 LIMIT 1`, workspace, message)
	if state != "sent" {
		post = ""
	}
	return post, state == "pending" || state == "sending", err
}

// SchedulesDue reports whether a schedule, or a tick, of some workspaces is due. It writes nothing.
func (s *Schedules) SchedulesDue(ctx context.Context, workspaces []string) (bool, error) {
	return s.db.Row(ctx, []any{new(int64)}, `SELECT 1 WHERE EXISTS (SELECT 1 FROM schedules WHERE next_at <= $1 AND `+served(`workspace`, `2`)+`)
		OR EXISTS (SELECT 1 FROM schedule_ticks WHERE due_at <= $1 AND `+served(`workspace`, `2`)+`)`, storage.Millis(s.wall()), storage.Between(workspaces))
}
