package operator

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/outbox"
)

var pauseRoutes = []Route{
	{Pattern: "GET pauses", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		pauses, err := s.pauses(c.Context())
		return List[ingest.Pause]{Items: pauses.List()}, err
	}},
	{Pattern: "POST pauses", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var n NewPause
		if err := c.Bind(&n); err != nil {
			return nil, err
		}
		return s.Pause(c.Context(), c.Write(""), n)
	}},
	{Pattern: "POST pauses/end", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var n struct {
			Scope string `json:"scope"`
		}
		if err := c.Bind(&n); err != nil {
			return nil, err
		}
		return s.Resume(c.Context(), c.Write(""), n.Scope)
	}},
}

// NewPause is a pause that an operator begins.
type NewPause struct {
	Scope string `json:"scope"` // empty for everything, W, W:CHANNEL, or agent:ID
	For   string `json:"for"`   // a duration, such as 2h or 7d; empty until it is resumed
	Say   string `json:"say"`   // what askers are told; empty for words of ours
	Now   bool   `json:"now"`   // also stops the runs that work there
}

// Paused is the result of a pause.
type Paused struct {
	ingest.Pause
	Stopped int `json:"stopped"` // runs
}

// maxSay bounds the words for askers, in bytes.
const maxSay = 1000

// pauses returns the pauses of the daemon, or those in the store without one.
func (s *Service) pauses(ctx context.Context) (*ingest.Pauses, error) {
	if s.Live != nil && s.Live.Pauses != nil {
		return s.Live.Pauses, nil
	}
	pauses := ingest.NewPauses(s.Journal.Threads, s.Now)
	return pauses, pauses.Read(ctx)
}

// Pause lets nobody in a scope ask an agent.
func (s *Service) Pause(ctx context.Context, w Write, n NewPause) (Paused, error) {
	pause := ingest.Pause{Scope: n.Scope, At: s.Now().UTC(), By: w.By, Say: strings.TrimSpace(n.Say)}
	faults := s.scopeFaults(n.Scope)
	faults.Check(len(n.Say) <= maxSay, "say", "must have at most 1000 bytes")
	if n.For != "" {
		until, ok := after(pause.At, n.For, 1)
		faults.Check(ok && until.After(pause.At), "for", "must be a duration such as 30m, 2h or 7d")
		pause.Until = until
	}
	if len(faults) > 0 {
		return Paused{}, faults
	}
	return audited(ctx, s, w, "pause", cmp.Or(n.Scope, everything), func(ctx context.Context) (Paused, error) {
		pauses, err := s.pauses(ctx)
		if err == nil {
			err = pauses.Begin(ctx, pause)
		}
		if err != nil || !n.Now {
			return Paused{Pause: pause}, err
		}
		stopped, err := s.stopWithin(ctx, pause)
		return Paused{pause, stopped}, err
	})
}

// everything names the scope of all workspaces in the audit.
const everything = "everything"

// scopeFaults returns the faults of a scope.
func (s *Service) scopeFaults(scope string) (faults event.FieldErrors) {
	c := s.Config()
	if id, isAgent := strings.CutPrefix(scope, "agent:"); isAgent {
		isKnown := slices.ContainsFunc(c.Agents, func(a config.Agent) bool { return a.ID == id })
		faults.Check(isKnown, "scope", "must name one of the agents: parley status lists them")
		return faults
	}
	workspace, channel, isChannel := strings.Cut(scope, ":")
	w := c.Workspace(workspace)
	faults.Check(scope == "" || w != nil, "scope", "must be a workspace, WORKSPACE:CHANNEL or agent:ID, or be left out for everything")
	if w != nil && isChannel {
		platform, _ := config.Platform(w.Platform)
		faults.Check(ingest.IsID(channel, platform.IsChannel), "scope", "must have the channel's id on the platform, not its name")
	}
	return faults
}

// stopWithin stops the unfinished runs that a pause covers.
func (s *Service) stopWithin(ctx context.Context, pause ingest.Pause) (stopped int, err error) {
	f := listing.RunFilter{State: "running", Limit: maxPage}
	if workspace, channel, ok := strings.Cut(pause.Scope, ":"); ok && s.Config().Workspace(workspace) != nil { // the filter also finds the threads of the channel
		f.Workspace, f.Channel = workspace, channel
	}
	for more := true; more; {
		var rows []listing.Run
		if rows, f.After, err = s.Journal.Listing.ListRuns(ctx, f); err != nil {
			return stopped, err
		}
		more = f.After != ""
		for _, run := range rows {
			w := s.Config().Workspace(run.Workspace)
			if w == nil || f.Channel == "" && !pause.Covers(run.Workspace, run.Channel, "", run.Agent) {
				continue
			}
			notice := outbox.NewNotice(w.Platform, pause.Words())
			if s.Live != nil && s.Live.Runs != nil {
				err = s.Live.Runs.Stop(ctx, run.ID, notice)
			} else {
				_, err = s.Journal.Runs.StopRun(ctx, run.ID, notice)
			}
			if err == nil { // otherwise it has ended meanwhile
				stopped++
			}
		}
	}
	return stopped, nil
}

// tellPause tells whether a pause still covers the place of a message, and how it ends.
func (s *Service) tellPause(ctx context.Context, w *Why, l *listing.Life) error {
	pauses, err := s.pauses(ctx)
	workspace := s.Config().Workspace(l.Workspace)
	if err != nil || workspace == nil {
		return err
	}
	pause := pauses.Of(l.Workspace, l.Channel, l.Parent, workspace.Channel(l.Channel, l.Parent).Agent)
	if pause == nil {
		w.Words += "; no pause covers it now"
		return nil
	}
	w.Words += "; " + cmp.Or(pause.Scope, everything) + " is " + (&ingest.PausedError{Pause: *pause}).Error() + ", by " + pause.By
	w.Change = strings.TrimSpace("parley resume " + pause.Scope)
	return nil
}

// Resume ends the pause of exactly a scope.
func (s *Service) Resume(ctx context.Context, w Write, scope string) (ingest.Pause, error) {
	return audited(ctx, s, w, "resume", cmp.Or(scope, everything), func(ctx context.Context) (ingest.Pause, error) {
		pauses, err := s.pauses(ctx)
		if err != nil {
			return ingest.Pause{}, err
		}
		ended, err := pauses.End(ctx, scope)
		if err == nil && !ended {
			err = Fail(http.StatusNotFound, "not-paused", cmp.Or(scope, everything)+" is not paused: parley status shows the pauses")
		}
		return ingest.Pause{Scope: scope}, err
	})
}

// Pause begins a pause.
func (c *Client) Pause(ctx context.Context, n NewPause) (Paused, error) {
	return Post[Paused](ctx, c, "pauses", n)
}

// Resume ends the pause of a scope.
func (c *Client) Resume(ctx context.Context, scope string) (ingest.Pause, error) {
	return Post[ingest.Pause](ctx, c, "pauses/end", map[string]string{"scope": scope})
}
