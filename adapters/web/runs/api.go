// Package runs serves the runs of the HTTP API: it begins them, shows their messages, and takes updates,
// signals and later answers.
package runs

import (
	"context"

	"parley/adapters/web/access"
	"parley/adapters/web/threads"
	"parley/assembly/runinput"
	"parley/assembly/workstream"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/workstreams"
	"parley/ingest/stream"
)

// Runs is the part of the journal that has the runs, with their messages, their names and the later answers of their agents.
type Runs interface {
	RunEvents(ctx context.Context, run string, after int64, limit int) (runs.Page, error)
	RunMessages(ctx context.Context, run string) ([]messages.Message, error)
	FollowRun(run string) (changed <-chan struct{}, stop func())
	Artifacts(ctx context.Context, run string) ([]runs.Artifact, error)
	NamedRun(ctx context.Context, workspace, actor, threadID, name string) (runs.Named, error)
	IsNameOfSeveral(ctx context.Context, workspace, actor, name string) (bool, error)
	AddEvents(ctx context.Context, run string, added runs.Added) error
	StopNamedRun(ctx context.Context, workspace, actor, threadID, name string, notice outbox.Notice) error
	LaterRun(ctx context.Context, known string) (runs.Later, error)
	AnswerRun(ctx context.Context, run string, answer stream.Message, keys ...string) error
}

// API serves the routes of runs.
type API struct {
	Threads threads.API // the threads of the runs
	Runs    Runs
	// Stop ends an unfinished run because its reader wants no answer. The notice informs the
	// thread.
	Stop func(ctx context.Context, run string, notice outbox.Notice) error
	// Replies takes the requests of agents that answer later.
	Replies Replies
	// Workstreams launches the workstreams of runs, and Children reads them.
	Workstreams *workstream.Service
	Children    *workstreams.Workstreams
}

// call is a request of a caller about runs.
type call struct {
	API
	access.Call
}

// Routes returns the routes of runs.
func (a API) Routes() []access.Route {
	routes := []access.Route{
		{Pattern: "GET /api/v1/runs/{runId}/events", Serve: access.Serve(a.of, call.listRunEvents)},
		{Pattern: "GET /api/v1/agent/runs/{runId}/updates", Serve: access.Serve(a.of, call.listUpdates)},
		{Pattern: "GET /api/v1/agent/runs/{runId}/stream", Serve: access.Serve(a.of, call.streamRun)},
	}
	for _, prefix := range []string{"", "/api/v1"} {
		routes = append(routes,
			access.Route{Pattern: "GET " + prefix + "/runs/{workflowId}/{runId}/updates", Serve: access.Serve(a.of, call.listUpdates)},
			access.Route{Pattern: "GET " + prefix + "/runs/{workflowId}/{runId}/stream", Serve: access.Serve(a.of, call.streamRun)},
			access.Route{Pattern: "POST " + prefix + "/runs/{runId}/updates", Take: access.Take(a.of, call.addUpdates), Own: a.Replies.update},
			access.Route{Pattern: "POST " + prefix + "/runs/{runId}/signals", Right: access.ForUsers, Take: access.Take(a.of, call.signal)},
		)
	}
	routes = append(routes, a.artifactRoutes()...)
	for i := range routes {
		routes[i].NotFound = "there is no such run"
	}
	routes = append(routes, a.workstreamRoutes()...)
	begin := access.Route{Right: access.ForUsers, TooLarge: runinput.TooLarge.Error(), Take: access.Take(a.of, call.postRun)}
	for _, pattern := range []string{"POST /api/v1/agent/run", "POST /api/v1/agent/runs"} {
		begin.Pattern = pattern
		routes = append(routes, begin)
	}
	return routes
}

// of returns the call of a caller.
func (a API) of(c access.Call) call { return call{a, c} }
