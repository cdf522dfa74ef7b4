package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"parley/adapters/web/exchange"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/stream"
)

// run returns the status of the run that the path names. The ID is empty if the caller has asked
// for the run under this name and it has not begun. A run that the caller may not read, or of
// another thread than the path's, is like an unknown one.
func (c call) run(r *http.Request) (runs.Status, error) {
	named, err := c.namedRun(r)
	page := runs.Page{Status: runs.Status{Workspace: c.Workspace, Platform: event.Web, ThreadID: named.ThreadID, MadeBy: string(c.Actor)}}
	if err == nil && named.ID != "" {
		page, err = c.Runs.RunEvents(r.Context(), named.ID, 0, 0)
		thread := threadOf(r)
		if err == nil && thread != "" && !strings.EqualFold(thread, page.ThreadID) {
			err = storage.ErrNotFound
		}
		if err == nil {
			err = c.readsRun(r.Context(), &page.Status)
		}
	}
	return page.Status, err
}

// threadOf returns the thread of the run that a request names, as its path or its query gives it; empty if it gives none.
func threadOf(r *http.Request) string {
	return cmp.Or(r.PathValue("workflowId"), r.URL.Query().Get("thread_id"))
}

// namedRun returns the run that the path names: the caller may have given it a name of its own, or
// else the name is its id. The ID is empty if the run has not begun.
func (c call) namedRun(r *http.Request) (runs.Named, error) {
	name := r.PathValue("runId")
	run, err := c.Runs.NamedRun(r.Context(), c.Workspace, string(c.Actor), strings.ToLower(threadOf(r)), name)
	if errors.Is(err, storage.ErrNotFound) {
		return runs.Named{ID: name}, nil
	}
	return run, err
}

// readsRun returns storage.ErrNotFound if the caller may not read a run.
func (c call) readsRun(ctx context.Context, run *runs.Status) error {
	reader := c.AsCaller(event.Human)
	if !reader.Reads(run.Workspace) {
		return storage.ErrNotFound
	}
	return c.Threads.Reads(ctx, reader, run.Workspace, run.MadeBy, run.ThreadID)
}

// ownRun is run for a request that changes the run. A run that the caller may only read is like an
// unknown one. A name that the caller has given to runs of several threads names none of them: its words must not get to another
// conversation than it means.
func (c call) ownRun(r *http.Request) (runs.Status, error) {
	if threadOf(r) == "" {
		several, err := c.Runs.IsNameOfSeveral(r.Context(), c.Workspace, string(c.Actor), r.PathValue("runId"))
		if err == nil && several {
			err = exchange.Fail(http.StatusConflict, "several", "runs of several threads have this id: name the thread of yours, ?thread_id=…")
		}
		if err != nil {
			return runs.Status{}, err
		}
	}
	run, err := c.run(r)
	if err == nil && run.Workspace != c.Workspace {
		err = storage.ErrNotFound
	}
	if err == nil && run.ID != "" {
		err = c.Threads.Uses(r.Context(), c.AsCaller(event.Human), run.Workspace, run.MadeBy, run.ThreadID)
	}
	return run, err
}

// listRunEvents responds with a page of the whole messages that are stored of a run: GET
// /api/v1/runs/{run_id}/events?after=&limit=&format=
func (c call) listRunEvents(w http.ResponseWriter, r *http.Request) error {
	var faults event.FieldErrors
	checkQuery(r, &faults, "after", "limit")
	after, limit, form := exchange.SeqOf(r, "after", &faults), exchange.LimitOf(r, &faults), formOf(r, &faults)
	if len(faults) > 0 {
		return faults
	}
	end, err := c.Threads.Streams.Begin(r.Context(), c.Owner())
	if err != nil {
		return err
	}
	defer end()
	run, err := c.run(r)
	var page runs.Page
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
	return exchange.Respond(w, http.StatusOK, map[string]any{"events": list, "next": next})
}

// runEvent returns a message with its seq and stage.
func runEvent(run string, e runs.Event, f form) (json.RawMessage, error) {
	raw, err := json.Marshal(f.of(run, e.Message))
	if err != nil {
		return nil, fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return append(fmt.Appendf(nil, `{"seq":%d,"stage":%q,`, e.Seq, e.Stage()), raw[1:]...), nil
}
