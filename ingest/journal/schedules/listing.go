package schedules

import (
	"context"
	"strings"
	"time"

	"parley/ingest/journal/storage"
)

// Result is how a tick ended, in the spelling of our API; empty while its run works or its posts are on their way.
type Result string

// The results.
const (
	Posted      Result = "posted"
	Quiet       Result = "quiet"
	Failed      Result = "failed"
	SkippedTick Result = "skipped"
)

// Status is a schedule with its last tick.
type Status struct {
	Schedule
	LastAt     time.Time // when it was planned; zero for none
	LastRun    string    // empty for none
	LastResult Result
	LastError  string // empty for none
}

// ended is the result of a tick k, and the run and the error of it.
const ended = `CASE WHEN k.state IN ('skipped', 'failed') THEN k.state
		WHEN r.state = 'done' THEN coalesce((SELECT CASE WHEN max(CASE WHEN d.state = 'failed' THEN 1 ELSE 0 END) = 1 THEN 'failed'
			WHEN max(CASE WHEN d.state IN ('pending', 'sending') THEN 1 ELSE 0 END) = 1 THEN '' ELSE 'posted' END
			FROM deliveries d WHERE d.run = r.id AND d.part >= 0), 'posted')
		WHEN r.state IN ('quiet', 'dropped') THEN 'quiet' WHEN r.state IS NOT NULL THEN 'failed'
		WHEN EXISTS (SELECT 1 FROM envelopes e WHERE e.workspace = k.workspace AND e.dedupe_key = k.message AND e.state = 'dead') THEN 'failed' ELSE '' END`

// ofLast is the last tick k of the schedule whose workspace and id follow, with its message m and its run r.
const (
	ofLast = ` FROM schedule_ticks k LEFT JOIN messages m ON m.workspace = k.workspace AND m.external_id = k.message LEFT JOIN runs r ON r.id = m.run WHERE `
	last   = ` ORDER BY k.planned_at DESC LIMIT 1`
)

// tell adds the last tick to a schedule.
func tell(tx *storage.Txn, s *Schedule) Status {
	status := Status{Schedule: *s}
	tx.Row([]any{&status.LastAt, &status.LastRun, (*string)(&status.LastResult), &status.LastError}, `SELECT k.planned_at, m.run, `+ended+`,
		CASE WHEN k.error <> '' THEN k.error WHEN r.error <> '' THEN r.error
			ELSE coalesce((SELECT d.error FROM deliveries d WHERE d.run = r.id AND d.state = 'failed' ORDER BY d.id LIMIT 1), '') END`+
		ofLast+`k.workspace = $1 AND k.schedule = $2`+last, s.Workspace, s.ID)
	return status
}

// ScheduleStatus returns a schedule with its last tick. It fails with ErrNotFound if there is none.
func (s *Schedules) ScheduleStatus(ctx context.Context, workspace, id string) (Status, error) {
	return storage.Read(ctx, s.db, func(tx *storage.Txn) Status {
		list := read(tx, storage.Rows(tx, (*row).dest, `SELECT `+columns+` FROM schedules s WHERE s.workspace = $1 AND s.id = $2`, workspace, id))
		if len(list) == 0 {
			tx.Fail(storage.ErrNotFound)
			return Status{}
		}
		return tell(tx, &list[0])
	})
}

// Listed bounds a list of schedules.
type Listed struct {
	Workspaces []string // those that are configured
	Before     string   // the Cursor of the last one of the page before; empty for the first page
	Limit      int
}

// Cursor is the place of a schedule in the lists.
func (s *Schedule) Cursor() string { return s.Workspace + " " + s.ID }

// ListSchedules returns a page of schedules, with their last ticks, by workspace and id, and whether there are more.
func (s *Schedules) ListSchedules(ctx context.Context, l Listed) (page []Status, more bool, err error) {
	workspace, id, _ := strings.Cut(l.Before, " ")
	page, err = storage.Read(ctx, s.db, func(tx *storage.Txn) (page []Status) {
		list := read(tx, storage.Rows(tx, (*row).dest, `SELECT `+columns+` FROM schedules s WHERE (s.workspace, s.id) > ($1, $4) AND `+served(`s.workspace`, `2`)+`
			AND (s.thread = '' OR s.next_at IS NOT NULL OR s.paused = 1) ORDER BY s.workspace, s.id LIMIT CAST($3 AS BIGINT)`,
			workspace, storage.Between(l.Workspaces), int64(l.Limit+1), id))
		if more = len(list) > l.Limit; more {
			list = list[:l.Limit]
		}
		for i := range list {
			page = append(page, tell(tx, &list[i]))
		}
		return page
	})
	return page, more, err
}

// Counts counts the schedules of workspaces.
type Counts struct {
	Total, Paused int64
	Failed        int64 // whose last tick has failed
}

// CountSchedules counts the schedules of workspaces that tick or are paused.
func (s *Schedules) CountSchedules(ctx context.Context, workspaces []string) (c Counts, err error) {
	_, err = s.db.Row(ctx, []any{&c.Total, &c.Paused, &c.Failed}, `SELECT count(*), count(*) - count(s.next_at),
		(SELECT count(*) FROM schedules s WHERE `+served(`s.workspace`, `1`)+` AND (SELECT `+ended+ofLast+`k.workspace = s.workspace AND k.schedule = s.id`+last+`) = 'failed')
		FROM schedules s WHERE `+served(`s.workspace`, `1`)+` AND (s.thread = '' OR s.next_at IS NOT NULL OR s.paused = 1)`, storage.Between(workspaces))
	return c, err
}
