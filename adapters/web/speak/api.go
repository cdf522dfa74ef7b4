// Package speak serves the routes with which programs speak: they send messages to workspaces of their own, put messages of
// others into other workspaces, and post in the name of Parley's agents.
package speak

import (
	"net/http"

	"parley/adapters/deliver"
	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/threads"
)

// API serves the routes of programs that speak.
type API struct {
	Threads threads.API
	// Outbox stores posts and sends them, and finds the places of messages.
	Outbox *deliver.Outbox
	// Reserved are the sources and the namespaces of senders that no injected message may have.
	Reserved []string
}

// Routes returns the route of the state of a post.
func (a API) Routes() []access.Route {
	return []access.Route{{Pattern: "GET /api/v1/posts/{id}", NotFound: "there is no such post", Serve: a.getPost}}
}

// PostMessage accepts a message for the caller's own workspace, or for one into which the caller may inject messages: POST
// /api/v1/workspaces/{workspace}/messages.
func (a API) PostMessage(w http.ResponseWriter, r *http.Request) {
	exchange.Handler(a.Threads.Gate.Guard, "", a.postMessage)(w, r)
}

func (a API) postMessage(w http.ResponseWriter, r *http.Request) error {
	workspace := r.PathValue("workspace")
	if r.ContentLength > exchange.MaxBody {
		return exchange.Fail(http.StatusRequestEntityTooLarge, "too-large", "the body must not be longer than 256 KiB")
	}
	caller, err := a.Threads.Gate.Admit(w, r, workspace, access.Caller.Sends)
	if err != nil {
		return err
	}
	if caller.Token.Actor.IsAgent() {
		return exchange.Fail(http.StatusForbidden, "forbidden", access.AgentsMay)
	}
	raw, err := exchange.ReadBody(a.Threads.Gate.Guard, w, r, tooLong)
	if err != nil {
		return err
	}
	if caller.Injects(workspace) {
		return a.inject(w, r, workspace, caller, raw)
	}
	return a.Threads.Post(w, r, workspace, caller, raw)
}

// tooLong is the message of the error for a body that is too long or too slow.
const tooLong = "the body must have at most 256 KiB and arrive within 10 seconds"
