// Package schedules stores what agents are asked at a time: the schedules of workspaces' files, those that agents
// made for a thread, and their ticks.
//
// A schedule's row knows when its next tick is due. A node takes that tick in one transaction, which adds the row of the
// tick, unique by workspace, schedule and planned time, and plans the next one. So a planned time has one tick,
// regardless of the number of nodes, restarts and changes of the clock. How a tick ended is not stored: it is read from the
// message that asked, and from its run.
package schedules

import (
	"context"
	"slices"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/storage"
)

// Schedule is a schedule as it is stored.
type Schedule struct {
	Workspace, ID string
	// Thread is the key of the thread for which an agent made it; empty for one of a workspace's file.
	Thread event.ThreadKey
	Plan
	Paused    bool      // by an operator
	NextAt    time.Time // of its next tick; zero if none is left, or it is paused
	Root      string    // the Message of the tick whose post begins the thread that further ticks continue; empty for none
	CreatedAt time.Time
}

// Plan has the times of a schedule's ticks, and the prompt, agent and place of a tick.
type Plan struct {
	Timing
	Agent  string `json:"agent,omitempty"` // empty for that of the channel
	Prompt string `json:"prompt"`
	// Channel or User is the place of a schedule of a file, by the platform's id.
	Channel string `json:"channel,omitempty"`
	User    string `json:"user,omitempty"`
	// Same continues the thread of the tick before.
	Same bool `json:"same,omitempty"`
	// Once runs the last tick that a downtime has missed.
	Once bool `json:"once,omitempty"`
	// Cause is the sender who asked for the run that has made it, and Alone is as in event.Internal.
	Cause string `json:"cause,omitempty"`
	Alone bool   `json:"alone,omitempty"`
	// Off is the word of the file that the schedule is paused.
	Off bool `json:"off,omitempty"`

	// The place of Thread.
	Platform event.Platform `json:"platform,omitempty"`
	Place    string         `json:"place,omitempty"`  // its channel
	Parent   string         `json:"parent,omitempty"` // of the channel
}

// IsPaused reports whether the schedule does not tick.
func (s *Schedule) IsPaused() bool { return s.Paused || s.Off }

// Schedules are the schedules in a journal.
type Schedules struct {
	db   *storage.DB
	wall func() time.Time
}

// New returns the schedules in a store. They tick by the wall clock, which may go back while the process runs.
func New(db *storage.DB, wall func() time.Time) *Schedules { return &Schedules{db, wall} }

// PlanTime returns the time by which the schedules tick.
func (s *Schedules) PlanTime() time.Time { return s.wall() }

const columns = `s.workspace, s.id, s.thread, s.plan, s.paused, s.next_at, s.root, s.created_at`

// row is a Schedule with the text of its plan.
type row struct {
	Schedule
	plan string
}

func (r *row) dest() []any {
	return []any{&r.Workspace, &r.ID, (*string)(&r.Thread), &r.plan, &r.Paused, &r.NextAt, &r.Root, &r.CreatedAt}
}

// read returns the schedules of rows.
func read(tx *storage.Txn, rows []row) []Schedule {
	list := make([]Schedule, len(rows))
	for i := range rows {
		list[i] = rows[i].Schedule
		list[i].Plan = Plan{}
		tx.Fail(storage.Unpack(rows[i].plan, &list[i].Plan))
	}
	return list
}

// find returns a schedule; nil for none. It is locked until the transaction ends.
func find(tx *storage.Txn, workspace, id string) *Schedule {
	list := read(tx, storage.Rows(tx, (*row).dest, `SELECT `+columns+` FROM schedules s WHERE s.workspace = $1 AND s.id = $2 FOR UPDATE`, workspace, id))
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// served is the condition that a workspace is one of $n, which Served returns.
func served(column, n string) string { return `$` + n + ` LIKE '%,' || ` + column + ` || ',%'` }

// millis returns a time of the store; nil for the zero time.
func millis(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return storage.Millis(t)
}

// syncBatch bounds the rows that one transaction of Sync writes.
const syncBatch = 500

// Sync makes the schedules of a workspace's file those of a list. A schedule whose times stay the same keeps its next
// tick. The ticks of a removed schedule that have not begun do not begin.
func (s *Schedules) Sync(ctx context.Context, workspace string, list []Schedule) error {
	known, err := storage.Read(ctx, s.db, func(tx *storage.Txn) []Schedule {
		return read(tx, storage.Rows(tx, (*row).dest, `SELECT `+columns+` FROM schedules s WHERE s.workspace = $1 AND s.thread = ''`, workspace))
	})
	if err != nil {
		return err
	}
	before := make(map[string]*Schedule, len(known))
	for i := range known {
		before[known[i].ID] = &known[i]
	}
	now := storage.Instant(storage.Millis(s.wall()))
	var changes []func(tx *storage.Txn)
	for i := range list {
		n := &list[i]
		if b := before[n.ID]; b == nil || !b.asPlanned(n, now) {
			changes = append(changes, func(tx *storage.Txn) { n.save(tx, now) })
		}
		delete(before, n.ID)
	}
	for id := range before {
		changes = append(changes, func(tx *storage.Txn) { remove(tx, workspace, "", id) })
	}
	for batch := range slices.Chunk(changes, syncBatch) {
		if err := s.db.Change(ctx, "", func(tx *storage.Txn) {
			for _, change := range batch {
				change(tx)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// correctPage bounds the schedules that one transaction of CorrectPlans looks at.
const correctPage = 500

// maxWait is longer than a tick waits for its next try.
const maxWait = 2 * time.Minute

// CorrectPlans corrects the times that a clock has written which led and was set back: no schedule's next tick is later than
// the first one after now, and a tick that was taken is asked soon. A tick that was asked is not asked again at its time.
func (s *Schedules) CorrectPlans(ctx context.Context) error {
	now := storage.Instant(storage.Millis(s.wall()))
	if err := s.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`UPDATE schedule_ticks SET due_at = $1 WHERE due_at > $2`, storage.Millis(now), storage.Millis(now.Add(maxWait)))
	}); err != nil {
		return err
	}
	for workspace, id := "", ""; ; {
		list, err := storage.Read(ctx, s.db, func(tx *storage.Txn) []Schedule {
			return read(tx, storage.Rows(tx, (*row).dest, `SELECT `+columns+` FROM schedules s WHERE s.next_at > $1 AND (s.workspace, s.id) > ($2, $3)
				ORDER BY s.workspace, s.id LIMIT CAST($4 AS BIGINT)`, storage.Millis(now), workspace, id, int64(correctPage)))
		})
		if err != nil {
			return err
		}
		for i := range list {
			known := &list[i]
			workspace, id = known.Workspace, known.ID
			next := known.Next(now)
			if next.IsZero() || !known.NextAt.After(next) {
				continue
			}
			if err := s.db.Change(ctx, "", func(tx *storage.Txn) {
				tx.Do(`UPDATE schedules SET next_at = $4 WHERE workspace = $1 AND id = $2 AND next_at = $3`, workspace, id, millis(known.NextAt), millis(next))
			}); err != nil {
				return err
			}
		}
		if len(list) < correctPage {
			return nil
		}
	}
}

// asPlanned reports whether a stored schedule is as its file wants it, with a next tick that is not later than the first
// one after now: the clock may have led before.
func (s *Schedule) asPlanned(n *Schedule, now time.Time) bool {
	if s.Plan != n.Plan {
		return false
	}
	if s.IsPaused() {
		return s.NextAt.IsZero()
	}
	next := n.Next(now)
	return !s.NextAt.IsZero() && (next.IsZero() || !s.NextAt.After(next))
}

// save stores a schedule of a file.
func (s *Schedule) save(tx *storage.Txn, now time.Time) {
	next := s.Next(now)
	if b := find(tx, s.Workspace, s.ID); b != nil {
		switch {
		case s.Off && !b.Off:
			endDue(tx, s.Workspace, s.ID, wasPaused)
			fallthrough
		case b.Paused || s.Off:
			next = time.Time{}
		case b.Timing == s.Timing && !b.NextAt.IsZero() && b.NextAt.Before(next):
			next = b.NextAt // it is due, or was missed
		}
	} else if s.Off {
		next = time.Time{}
	}
	tx.Do(`INSERT INTO schedules (workspace, id, thread, plan, next_at, created_at) VALUES ($1, $2, '', $3, $4, $5)
		ON CONFLICT (workspace, id) DO UPDATE SET thread = '', plan = excluded.plan, next_at = excluded.next_at`,
		s.Workspace, s.ID, tx.Pack(s.Plan, false), millis(next), storage.Millis(now))
}

// remove removes a schedule of a thread, or of a file, and ends its ticks that have not begun. It reports whether there was
// one.
func remove(tx *storage.Txn, workspace string, thread event.ThreadKey, id string) bool {
	if tx.Exec(`DELETE FROM schedules WHERE workspace = $1 AND id = $2 AND thread = $3`, workspace, id, string(thread)) == 0 {
		return false
	}
	endDue(tx, workspace, id, "the schedule was removed")
	return true
}

// endDue ends the ticks of a schedule that have not begun.
func endDue(tx *storage.Txn, workspace, id, why string) {
	tx.Do(`UPDATE schedule_ticks SET state = 'skipped', error = $3, due_at = NULL WHERE workspace = $1 AND schedule = $2 AND state = 'due'`, workspace, id, why)
}

// ErrInFile means that an operator cannot resume a schedule, because its file pauses it.
var ErrInFile = fault("the schedule is paused in the file of its workspace: remove paused there")

// fault is an error that tells its reader what to do.
type fault string

// Error implements error.
func (f fault) Error() string { return string(f) }

// wasPaused is why a tick did not run.
const wasPaused = "the schedule was paused"

// Pause pauses a schedule, or resumes it. The ticks of its pause are left out, and those that have not begun. It fails with ErrNotFound if
// there is none, and with ErrInFile.
func (s *Schedules) Pause(ctx context.Context, workspace, id string, paused bool) error {
	return s.db.Change(ctx, "", func(tx *storage.Txn) {
		known := find(tx, workspace, id)
		switch {
		case known == nil:
			tx.Fail(storage.ErrNotFound)
			return
		case !paused && known.Off:
			tx.Fail(ErrInFile)
			return
		case known.Paused == paused:
			return
		}
		next := time.Time{}
		if paused {
			endDue(tx, workspace, id, wasPaused)
		} else {
			next = known.Next(s.wall())
		}
		tx.Do(`UPDATE schedules SET paused = $3, next_at = $4 WHERE workspace = $1 AND id = $2`, workspace, id, storage.Number(paused), millis(next))
	})
}

// Aged returns the steps for ticks that were planned before a bound, and for the schedules of threads that have none
// left since.
func Aged(before int64) []storage.Step {
	return []storage.Step{
		storage.ByAge("schedule_ticks", "workspace, schedule, planned_at", "planned_at", before),
		{Name: "schedules", Bound: before, Statements: []string{
			`DELETE FROM schedules WHERE (workspace, id) IN (SELECT workspace, id FROM schedules WHERE thread <> '' AND next_at IS NULL AND paused = 0 AND created_at <= $1
				AND NOT EXISTS (SELECT 1 FROM schedule_ticks k WHERE k.workspace = schedules.workspace AND k.schedule = schedules.id) LIMIT 100)`,
		}},
	}
}

// OfWorkspace returns the steps for the schedules of a removed workspace.
func OfWorkspace(workspace string) []storage.Step {
	return []storage.Step{storage.ByKey(workspace, "schedules", "id"), storage.ByKey(workspace, "schedule_ticks", "schedule")}
}

// Texts are the plans of the schedules that agents have made, which end with them, and the errors of ticks.
func Texts() []storage.Texts {
	return []storage.Texts{
		{
			Page:  `SELECT id, plan FROM schedules WHERE workspace = $1 AND id > $2 AND thread <> '' ORDER BY id LIMIT 200`,
			First: []any{""}, Columns: 1,
			Empty: []string{`DELETE FROM schedule_ticks WHERE schedule = $1 AND workspace = $2`, `DELETE FROM schedules WHERE id = $1 AND workspace = $2`},
		},
		{
			Page: `SELECT schedule, planned_at, error FROM schedule_ticks WHERE workspace = $1 AND (schedule, planned_at) > ($2, $3) AND error <> ''
				ORDER BY schedule, planned_at LIMIT 200`,
			First: []any{"", int64(0)}, Columns: 1,
			Empty: []string{`UPDATE schedule_ticks SET error = '' WHERE schedule = $1 AND planned_at = $2 AND workspace = $3`},
		},
	}
}
