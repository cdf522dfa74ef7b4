// Package runs serves the runs of the HTTP API: it begins them, shows their messages, and takes updates,
// signals and later answers.
package runs

import (
	"parley/adapters/web/access"
	"parley/adapters/web/threads"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/assembly/workstream"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/workstreams"
)

// API serves the routes of runs.
type API struct {
	Threads threads.API // the threads of the runs
	Runs    *runs.Runs
	Turns   *turn.Runner // stops a run whose reader wants no answer
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
