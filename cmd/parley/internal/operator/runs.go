package operator

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/outbox"
)

var runRoutes = []Route{
	{Pattern: "GET runs", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		if err := c.Known("before", "limit", "failed", "state", "workspace", "thread", "channel", "agent", "q", "since", "until"); err != nil {
			return nil, err
		}
		page, err := c.Page()
		if err != nil {
			return nil, err
		}
		f := listing.RunFilter{
			State: c.Query("state"), Workspace: c.Query("workspace"), Thread: c.Query("thread"), Channel: c.Query("channel"), Agent: c.Query("agent"), Text: c.Query("q"),
			After: page.Before, Limit: page.Limit,
		}
		if c.Query("failed") == "true" {
			f.State = "failed"
		}
		if f.Since, f.Until, err = s.Times(c.Query("since"), c.Query("until")); err != nil {
			return nil, err
		}
		return s.Runs(c.Context(), c.By, f)
	}},
	{Pattern: "GET runs/{id}", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		return s.Run(c.Context(), c.By, c.Path("id"))
	}},
	{Pattern: "POST runs/{id}/retry", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		return s.RetryRun(c.Context(), c.Write(""), c.Path("id"))
	}},
	{Pattern: "POST runs/{id}/stop", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		return s.StopRun(c.Context(), c.Write(""), c.Path("id"))
	}},
}

// Runs returns a page of the runs, the unfinished ones first, and then those that ended last.
func (s *Service) Runs(ctx context.Context, by Caller, f listing.RunFilter) (List[Run], error) {
	if f.State != "" && !slices.Contains(listing.RunStates(), f.State) {
		return List[Run]{}, event.FieldErrors{{Field: "state", Message: "must be one of " + words(listing.RunStates())}}
	}
	rows, next, err := s.Journal.Listing.ListRuns(ctx, f)
	if err != nil {
		return List[Run]{}, refusal(err)
	}
	name, end := s.ChannelNames(ctx, by)
	defer end()
	items := make([]Run, len(rows))
	for i, r := range rows {
		items[i] = Run{Run: r, ChannelName: name(r.Workspace, r.Channel, r.Room)}
	}
	return pageOf(items, next), nil
}

// Run is a run with the name of its channel, which is empty if it is not known or if the caller may not read the thread.
type Run struct {
	listing.Run
	ChannelName string `json:"channel_name,omitempty"`
	Traced             // a list of runs has none
}

// Run returns a run by an id of any kind; see listing.RunID.
func (s *Service) Run(ctx context.Context, by Caller, id string) (Run, error) {
	run, err := s.Journal.Listing.FindRun(ctx, id)
	if err != nil {
		return Run{}, err
	}
	return Run{run, s.channelName(ctx, by, run.Workspace, run.Channel, run.Room), s.traceOfRun(ctx, run.ID)}, nil
}

// Retry is the result of RetryRun.
type Retry struct {
	ID       string `json:"id"`       // of the failed run
	Messages int64  `json:"messages"` // that are asked again, in another run
	State    string `json:"state"`    // queued
}

// RetryRun asks again for the messages of a failed run, in another run. Without a daemon, its next start asks.
func (s *Service) RetryRun(ctx context.Context, w Write, id string) (Retry, error) {
	return audited(ctx, s, w, "run.retry", id, func(ctx context.Context) (Retry, error) {
		retry := s.Journal.Runs.RetryRun
		if s.Live != nil && s.Live.Runs != nil {
			retry = s.Live.Runs.Retry
		}
		id, err := s.Journal.Listing.RunID(ctx, id)
		if err != nil {
			return Retry{}, err
		}
		again, err := retry(ctx, id)
		if err != nil {
			return Retry{}, refusal(err)
		}
		return Retry{ID: id, Messages: again.Messages, State: "queued"}, nil
	})
}

// stoppedWords are the notice of a run that an operator has stopped.
const stoppedWords = "Stopped by an operator."

// StopRun ends an unfinished run without an answer, and tells its thread.
func (s *Service) StopRun(ctx context.Context, w Write, id string) (listing.Run, error) {
	return audited(ctx, s, w, "run.stop", id, func(ctx context.Context) (listing.Run, error) {
		run, err := s.Journal.Listing.FindRun(ctx, id)
		if err != nil {
			return run, err
		}
		configured := s.Config().Workspace(run.Workspace)
		if configured == nil {
			return run, Fail(http.StatusConflict, "state", "the workspace of the run is not configured any more")
		}
		notice := outbox.NewNotice(configured.Platform, stoppedWords)
		if s.Live != nil && s.Live.Runs != nil {
			err = s.Live.Runs.Stop(ctx, run.ID, notice)
		} else {
			_, err = s.Journal.Runs.StopRun(ctx, run.ID, notice)
		}
		if err != nil {
			return run, refusal(err)
		}
		return s.Journal.Listing.FindRun(ctx, run.ID)
	})
}

// Runs returns a page of runs.
func (c *Client) Runs(ctx context.Context, query url.Values) (List[Run], error) {
	return Get[List[Run]](ctx, c, "runs", query)
}

// Run returns a run.
func (c *Client) Run(ctx context.Context, id string) (Run, error) {
	return Get[Run](ctx, c, "runs/"+url.PathEscape(id), nil)
}

// RetryRun asks again for a failed run.
func (c *Client) RetryRun(ctx context.Context, id string) (Retry, error) {
	return Post[Retry](ctx, c, "runs/"+url.PathEscape(id)+"/retry", nil)
}

// StopRun ends an unfinished run.
func (c *Client) StopRun(ctx context.Context, id string) (listing.Run, error) {
	return Post[listing.Run](ctx, c, "runs/"+url.PathEscape(id)+"/stop", nil)
}
