package tools

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
	"parley/ingest/schedule"
)

// inThread names a thread.
type inThread struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"the id of the workspace; without it, the token's own"`
	ThreadID  string `json:"thread_id,omitempty" jsonschema:"the UUID of the thread; without it, that of the run, if an agent asks during a run"`
}

type scheduleMessage struct {
	inThread
	Prompt   string `json:"prompt" jsonschema:"what the agent of the thread is asked then, of at most 32000 characters"`
	At       string `json:"at,omitempty" jsonschema:"the one time at which it is asked, such as 2026-11-30T09:00:00Z; give this or cron"`
	Cron     string `json:"cron,omitempty" jsonschema:"five fields: minute, hour, day of month, month and weekday"`
	TimeZone string `json:"time_zone,omitempty" jsonschema:"of cron, such as Europe/Vienna; without it, that of the workspace"`
	Key      string `json:"key,omitempty" jsonschema:"of at most 200 bytes: a repetition with the same key in the thread is the same schedule"`
}

// scheduleMessage has the agent of a thread asked later. It answers there.
func (c call) scheduleMessage(ctx context.Context, in scheduleMessage) (out schedule.Listed, err error) {
	spot, err := c.scheduled(ctx, in.inThread, true)
	if err != nil {
		return out, err
	}
	if len(in.Key) > maxKey {
		return out, event.FieldErrors{{Field: "key", Message: "must have at most 200 bytes"}}
	}
	e := schedule.Entry{
		Workspace: spot.Workspace, Thread: spot.ID, Agent: c.AgentOf(spot.Workspace, cmp.Or(spot.Parent, spot.Channel)), Prompt: event.Text(in.Prompt),
		Cron: in.Cron, TimeZone: in.TimeZone, Key: c.key,
	}
	if in.Key != "" {
		e.Key = c.by + "/" + in.Key
	}
	if c.view != nil {
		e.Agent = c.view.run.Agent
		if !c.Rights(e.Agent).schedules() {
			return out, exchange.Fail(http.StatusForbidden, "schedule", "the agent may schedule nothing: tools.schedule is false")
		}
		e.Cause, e.Alone = c.view.run.Cause()
	}
	if in.At != "" {
		if e.At, err = time.Parse(time.RFC3339, in.At); err != nil {
			return out, event.FieldErrors{{Field: "at", Message: "must be a time with its zone, such as 2026-11-30T09:00:00Z or 2026-11-30T10:00:00+01:00"}}
		}
	}
	out, err = c.Schedules.Add(ctx, e)
	if errors.Is(err, schedules.ErrTooMany) {
		err = exchange.Fail(http.StatusConflict, "too-many", err.Error())
	}
	return out, err
}

// maxKey bounds an idempotency key, in bytes.
const maxKey = 200

type scheduleList struct {
	Schedules []schedule.Listed `json:"schedules" jsonschema:"those that wait, the next one first"`
}

// listSchedules returns the schedules of a thread that wait.
func (c call) listSchedules(ctx context.Context, in inThread) (out scheduleList, err error) {
	spot, err := c.scheduled(ctx, in, false)
	if err != nil {
		return out, err
	}
	out.Schedules, err = c.Schedules.List(ctx, spot.Workspace, spot.ID)
	return out, err
}

type cancelSchedule struct {
	inThread
	ID string `json:"id" jsonschema:"of the schedule, as list_schedules returns it"`
}

type canceled struct {
	Canceled string `json:"canceled" jsonschema:"the id of the schedule"`
}

// cancelSchedule ends a schedule of a thread.
func (c call) cancelSchedule(ctx context.Context, in cancelSchedule) (out canceled, err error) {
	spot, err := c.scheduled(ctx, in.inThread, true)
	if err != nil {
		return out, err
	}
	if err = c.Schedules.Cancel(ctx, spot.Workspace, spot.ID, in.ID); errors.Is(err, storage.ErrNotFound) {
		err = exchange.Fail(http.StatusNotFound, "not-found", "no such schedule of this thread waits; list_schedules has all")
	}
	out.Canceled = in.ID
	return out, err
}

// scheduled returns the thread of a call about schedules. Who changes them must be allowed to post in the thread, and others to read
// it. The agent of a run may do both in the run's thread. Elsewhere it must be allowed to read the thread too if it changes something
// there, because the run of a schedule reads it.
func (c call) scheduled(ctx context.Context, in inThread, changes bool) (spot threads.Spot, err error) {
	id := strings.ToLower(in.ThreadID)
	if id == "" && c.view != nil {
		id = c.view.run.ThreadID
	}
	if !payload.IsUUID(id) {
		return spot, event.FieldErrors{{Field: "thread_id", Message: "must be a UUID"}}
	}
	needs := mayRead
	own := c.view != nil && id == c.view.run.ThreadID && cmp.Or(in.Workspace, c.view.run.Workspace) == c.view.run.Workspace
	if changes && !own {
		needs = mayPost
	}
	if c.view != nil && c.view.sight.Bounded() {
		return spot, errBounded
	}
	workspace, err := c.workspace(in.Workspace, needs)
	if err == nil && c.view != nil && workspace != c.view.run.Workspace {
		err = storage.ErrNotFound
	}
	if err == nil && (!changes || c.view != nil) {
		if err = c.view.sees(ctx, id); err == nil {
			err = c.Threads.Admit(ctx, c.Caller, workspace, id)
		}
	}
	if err == nil {
		spot, err = c.Places.SpotOf(ctx, workspace, id)
	}
	if err == nil && changes && !own {
		err = c.MayPost(workspace, spot.Channel)
	}
	return spot, err
}
