package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"parley/assembly/stream"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// Runs reads the messages of runs.
type Runs interface {
	RunEvents(ctx context.Context, run string, after int64, limit int) (journal.RunPage, error)
	RunMessages(ctx context.Context, run string) ([]journal.Message, error)
	FollowRun(run string) (changed <-chan struct{}, stop func())
	NamedRun(ctx context.Context, workspace, actor, threadID, name string) (journal.NamedRun, error)
}

// Updates adds messages to runs, and stops a run that has not begun.
type Updates interface {
	AddEvents(ctx context.Context, run string, added journal.Added) error
	StopNamedRun(ctx context.Context, workspace, actor, threadID, name string, notice journal.Notice) error
}

// runRoutes returns the routes of the messages of runs.
func runRoutes() []Route {
	routes := []Route{
		{Pattern: "GET /api/v1/runs/{runId}/events", Serve: Call.listRunEvents},
		{Pattern: "GET /api/v1/agent/runs/{runId}/stream", Serve: Call.streamRun},
		{Pattern: "POST /api/v1/tickets", Take: Call.postTicket},
	}
	for _, prefix := range []string{"", "/api/v1"} {
		routes = append(routes,
			Route{Pattern: "GET " + prefix + "/runs/{workflowId}/{runId}/updates", Serve: Call.listUpdates},
			Route{Pattern: "GET " + prefix + "/runs/{workflowId}/{runId}/stream", Serve: Call.streamRun},
			Route{Pattern: "POST " + prefix + "/runs/{runId}/updates", Take: Call.addUpdates, Own: Replies.update},
			Route{Pattern: "POST " + prefix + "/runs/{runId}/signals", Right: ForUsers, Take: Call.signal},
		)
	}
	for i := range routes {
		routes[i].NotFound = "there is no such run"
	}
	return routes
}

// run returns the status of the run that the path names. The ID is empty if the caller has asked
// for the run under this name and it has not begun. A run that the caller may not read, or of
// another thread than the path's, is like an unknown one.
func (c Call) run(r *http.Request) (journal.RunStatus, error) {
	named, err := c.namedRun(r)
	page := journal.RunPage{RunStatus: journal.RunStatus{Workspace: c.Workspace, Platform: event.Web, ThreadID: named.ThreadID, MadeBy: string(c.Actor)}}
	if err == nil && named.ID != "" {
		page, err = c.Runs.RunEvents(r.Context(), named.ID, 0, 0)
		thread := r.PathValue("workflowId")
		if err == nil && thread != "" && !strings.EqualFold(thread, page.ThreadID) {
			err = journal.ErrNotFound
		}
		if err == nil {
			err = c.readsRun(r.Context(), &page.RunStatus)
		}
	}
	return page.RunStatus, err
}

// namedRun returns the run that the path names: the caller may have given it a name of its own, or
// else the name is its id. The ID is empty if the run has not begun.
func (c Call) namedRun(r *http.Request) (journal.NamedRun, error) {
	name := r.PathValue("runId")
	run, err := c.Runs.NamedRun(r.Context(), c.Workspace, string(c.Actor), strings.ToLower(r.PathValue("workflowId")), name)
	if errors.Is(err, journal.ErrNotFound) {
		return journal.NamedRun{ID: name}, nil
	}
	return run, err
}

// readsRun returns journal.ErrNotFound if the caller may not read a run.
func (c Call) readsRun(ctx context.Context, run *journal.RunStatus) error {
	reader := caller{workspace: c.Workspace, token: c.Token}
	if !reader.reads(run.Workspace) {
		return journal.ErrNotFound
	}
	return c.uses(ctx, reader, run.Workspace, run.MadeBy, run.ThreadID)
}

// ownRun is run for a request that changes the run. A run that the caller may only read is like an
// unknown one.
func (c Call) ownRun(r *http.Request) (journal.RunStatus, error) {
	run, err := c.run(r)
	if err == nil && run.Workspace != c.Workspace {
		err = journal.ErrNotFound
	}
	return run, err
}

// listRunEvents responds with a page of the whole messages that are stored of a run: GET
// /api/v1/runs/{run_id}/events?after=&limit=&format=
func (c Call) listRunEvents(w http.ResponseWriter, r *http.Request) error {
	var faults event.FieldErrors
	checkQuery(r, &faults, "after", "limit")
	after, limit, form := seqOf(r, "after", &faults), limitOf(r, &faults), formOf(r, &faults)
	if len(faults) > 0 {
		return faults
	}
	end, err := c.begin(r)
	if err != nil {
		return err
	}
	defer end()
	run, err := c.run(r)
	var page journal.RunPage
	if err == nil && run.ID != "" {
		page, err = c.Runs.RunEvents(r.Context(), run.ID, after, limit)
	}
	if err != nil {
		return err
	}
	list := []json.RawMessage{}
	var next *int64
	for _, e := range page.Events {
		if e.Type == stream.StreamingChunk {
			continue
		}
		raw, err := runEvent(run.ID, e, form)
		if err != nil {
			return err
		}
		list = append(list, raw)
	}
	if page.Full && len(page.Events) > 0 {
		next = &page.Events[len(page.Events)-1].Seq
	}
	return respond(w, http.StatusOK, map[string]any{"events": list, "next": next})
}

// runEvent returns a message with its seq and stage.
func runEvent(run string, e journal.RunEvent, f form) (json.RawMessage, error) {
	raw, err := json.Marshal(f.of(run, e.Message))
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return append(fmt.Appendf(nil, `{"seq":%d,"stage":%q,`, e.Seq, e.Stage()), raw[1:]...), nil
}
