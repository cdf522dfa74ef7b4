// Package threads serves the threads of the HTTP API: their messages, participants, history and news.
package threads

import (
	"time"

	"parley/adapters"
	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/files"
	"parley/ingest"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/workstreams"
)

// API serves the routes of threads and their messages.
type API struct {
	Gate     access.Gate
	Storage  files.Storage
	Inbox    adapters.Inbox // accepts messages for Ingest
	Ingest   *ingest.Ingest
	Places   *threads.Threads
	Messages *messages.Messages
	Children *workstreams.Workstreams // of the runs of threads
	Streams  *exchange.Streams
	Now      func() time.Time
}

// call is a request of a caller about the threads of its workspace.
type call struct {
	API
	access.Call
	html bool // the caller wants the text of agents as HTML, too
	work bool // the caller wants the work of the thread, too
}

// Routes returns the routes of threads that name no workspace.
func (a API) Routes() []access.Route {
	const thread = "/api/v1/chat/threads/{thread_id}"
	return []access.Route{
		{Pattern: "POST /api/v1/chat/threads", Right: access.ForUsers, Take: access.Take(a.of, call.postThread)},
		{Pattern: "GET /api/v1/chat/threads", Serve: access.Serve(a.of, call.listOwnThreads)},
		{Pattern: "GET /api/v1/chat/caller", Serve: access.Serve(a.of, call.getCaller)},
		{Pattern: "GET " + thread, Serve: access.Serve(a.of, call.getThread)},
		{Pattern: "PATCH " + thread, Right: access.ForUsers, Take: access.Take(a.of, call.patchThread)},
		{Pattern: "POST " + thread + "/participants", Right: access.ForUsers, Take: access.Take(a.of, call.postParticipant)},
		{Pattern: "DELETE " + thread + "/participants/{actor}", NotFound: "the thread has no such participant", Serve: access.Serve(a.of, call.deleteParticipant)},
		{Pattern: "POST " + thread + "/messages", Right: access.ForUsers, Take: access.Take(a.of, call.postChatMessage)},
		{Pattern: "POST " + thread + "/agent-messages", Right: access.ForAgents, Take: access.Take(a.of, call.postChatMessage)},
		{Pattern: "GET " + thread + "/messages", Serve: access.Serve(a.of, call.listChatMessages)},
		{Pattern: "GET " + thread + "/stream", Serve: access.Serve(a.of, call.streamThread)},
		{Pattern: "GET /api/v1/chat/stream", Serve: access.Serve(a.of, call.streamNews)},
		{Pattern: "GET /api/v1/agent/history", Serve: access.Serve(a.of, call.history)},
	}
}

// of returns the call of a caller.
func (a API) of(c access.Call) call { return call{API: a, Call: c} }
