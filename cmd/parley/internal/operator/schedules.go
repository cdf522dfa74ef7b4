package operator

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/schedules"
)

var scheduleRoutes = []Route{
	{Pattern: "GET schedules", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		page, err := c.Page()
		if err != nil {
			return nil, err
		}
		return s.Schedules(c.Context(), page)
	}},
	{Pattern: "POST schedules/{workspace}/{id}/run", Role: config.RoleOperator, serve: changeSchedule((*Service).RunSchedule)},
	{Pattern: "POST schedules/{workspace}/{id}/pause", Role: config.RoleOperator, serve: changeSchedule((*Service).PauseSchedule)},
	{Pattern: "POST schedules/{workspace}/{id}/resume", Role: config.RoleOperator, serve: changeSchedule((*Service).ResumeSchedule)},
}

// changeSchedule serves a change of a schedule.
func changeSchedule(change func(*Service, context.Context, Write, string, string) (Schedule, error)) func(*Service, *Call) (any, error) {
	return func(s *Service, c *Call) (any, error) {
		var n struct {
			Note string `json:"note"`
		}
		if err := c.Bind(&n); err != nil {
			return nil, err
		}
		return change(s, c.Context(), c.Write(n.Note), c.Path("workspace"), c.Path("id"))
	}
}

// Schedule is a schedule of a workspace's file, or one that an agent made for a thread, with its last tick.
type Schedule struct {
	ID         string           `json:"id"`
	Workspace  string           `json:"workspace"`
	NextAt     *time.Time       `json:"next_at"`     // nil if it is paused, or has ticked for the last time
	LastAt     *time.Time       `json:"last_at"`     // for which its last tick was planned; nil for none
	LastRun    string           `json:"last_run"`    // empty for none
	LastResult schedules.Result `json:"last_result"` // posted, quiet, failed or skipped; empty for none, and while it works
	LastError  string           `json:"last_error"`
	Paused     bool             `json:"paused"`
	Cron       string           `json:"cron"` // empty for a single time
	TimeZone   string           `json:"time_zone"`
	Channel    string           `json:"channel"` // the platform's id
	User       string           `json:"user"`    // the platform's id, instead of a channel
	Agent      string           `json:"agent"`   // empty for that of the channel
	// Thread is the key of the thread for which an agent made it; empty for one of a file.
	Thread event.ThreadKey `json:"thread"`
}

func scheduleOf(s *schedules.Status) Schedule {
	x := Schedule{
		ID: s.ID, Workspace: s.Workspace, LastRun: s.LastRun, LastResult: s.LastResult, LastError: s.LastError, Paused: s.IsPaused(),
		Cron: s.Cron, TimeZone: s.TimeZone, Channel: s.Channel + s.Place, User: s.User, Agent: s.Agent, Thread: s.Thread,
	}
	if !s.NextAt.IsZero() {
		x.NextAt = new(s.NextAt.UTC())
	}
	if !s.LastAt.IsZero() {
		x.LastAt = new(s.LastAt.UTC())
	}
	return x
}

// configured returns the ids of the configured workspaces.
func (s *Service) configured() []string {
	c := s.Config()
	ids := make([]string, len(c.Workspaces))
	for i, w := range c.Workspaces {
		ids[i] = w.ID
	}
	return ids
}

// Schedules returns a page of the schedules, by workspace and id.
func (s *Service) Schedules(ctx context.Context, page Page) (List[Schedule], error) {
	rows, more, err := s.Journal.Schedules.ListSchedules(ctx, schedules.Listed{Workspaces: s.configured(), Before: page.Before, Limit: page.Limit})
	if err != nil {
		return List[Schedule]{}, err
	}
	items, next := make([]Schedule, len(rows)), ""
	for i := range rows {
		items[i], next = scheduleOf(&rows[i]), rows[i].Cursor()
	}
	return listOf(items, more, func(Schedule) string { return next }), nil
}

// RunSchedule lets a schedule ask now, also a paused one.
func (s *Service) RunSchedule(ctx context.Context, w Write, workspace, id string) (Schedule, error) {
	if err := s.needsLive("a run of a schedule"); err != nil {
		return Schedule{}, err
	}
	return s.changed(ctx, w, "schedule.run", workspace, id, s.Journal.Schedules.RunNow)
}

// PauseSchedule lets a schedule ask no more, until it is resumed.
func (s *Service) PauseSchedule(ctx context.Context, w Write, workspace, id string) (Schedule, error) {
	return s.changed(ctx, w, "schedule.pause", workspace, id, func(ctx context.Context, workspace, id string) error {
		return s.Journal.Schedules.Pause(ctx, workspace, id, true)
	})
}

// ResumeSchedule lets a paused schedule ask again.
func (s *Service) ResumeSchedule(ctx context.Context, w Write, workspace, id string) (Schedule, error) {
	return s.changed(ctx, w, "schedule.resume", workspace, id, func(ctx context.Context, workspace, id string) error {
		return s.Journal.Schedules.Pause(ctx, workspace, id, false)
	})
}

// changed does a change of a schedule, and returns the schedule.
func (s *Service) changed(ctx context.Context, w Write, what, workspace, id string, change func(ctx context.Context, workspace, id string) error) (Schedule, error) {
	return audited(ctx, s, w, what, workspace+"/"+id, func(ctx context.Context) (Schedule, error) {
		switch err := change(ctx, workspace, id); {
		case errors.Is(err, schedules.ErrWorks):
			return Schedule{}, Fail(http.StatusConflict, "works", err.Error())
		case errors.Is(err, schedules.ErrInFile):
			return Schedule{}, Fail(http.StatusConflict, "paused-in-file", err.Error())
		case err != nil:
			return Schedule{}, err
		}
		status, err := s.Journal.Schedules.ScheduleStatus(ctx, workspace, id)
		if err == nil && s.Live != nil && s.Live.Schedules != nil {
			s.Live.Schedules.Look()
		}
		return scheduleOf(&status), err
	})
}

// Schedules returns a page of the schedules.
func (c *Client) Schedules(ctx context.Context, query url.Values) (List[Schedule], error) {
	return Get[List[Schedule]](ctx, c, "schedules", query)
}

// ChangeSchedule asks for a change of a schedule: run, pause or resume.
func (c *Client) ChangeSchedule(ctx context.Context, workspace, id, change, note string) (Schedule, error) {
	return Post[Schedule](ctx, c, "schedules/"+url.PathEscape(workspace)+"/"+url.PathEscape(id)+"/"+change, map[string]string{"note": note})
}
